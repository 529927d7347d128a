// Package hub tells every client what was committed, in order, without keeping anything
// for any of them. It owns one bell and one ring of encoded events for each workspace,
// and the streaming text that is not committed yet.
//
// A subscription is a cursor: the number it has come to. It reads from the ring, or from
// the log where the ring no longer reaches that far back, or learns that it must begin
// again from a snapshot. There is no queue for each client: a slow one is a cursor that
// lags, costs one batch of memory and holds nobody up. Streaming text of a slow client
// becomes one longer piece in place of many small ones.
//
// The hub knows the shape of an event's frame and nothing of what an event means, except
// that a message which has ended needs its streaming text no more. It must not know
// sockets, HTTP or storage.
package hub

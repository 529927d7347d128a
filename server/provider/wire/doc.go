// Package wire moves JSON lines between the daemon and a provider process. It
// owns three things: bounded lines in ([Reader]), whole valid lines out
// ([Writer]), and a two-way JSON-RPC 2.0 conversation over both ([Peer]).
//
// It must not know any provider, session or turn, nor how a process is run:
// the transport is an io.Reader and an io.Writer. It imports nothing of this
// module.
//
// # Order
//
// A provider's meaning lies in the order of its lines, so there is exactly one
// reading goroutine, the one that called [Peer.Run]. It runs [Options.Handler]
// for requests and notifications and the callback given to [Peer.Go] for
// answers, one after the other, in the order the lines arrived. Nothing is
// handed over to another goroutine in between. [Peer.Call] waits in its own
// goroutine and therefore has no place in that order; use Go where an answer
// must be seen before the notification that follows it.
//
// # Faults
//
// A line that is no message costs that line only: it is counted and reported
// as a [Diagnostic], and reading goes on. Only the end of the transport, or
// [Peer.Close], ends a peer; every open call then fails with [*ClosedError].
package wire

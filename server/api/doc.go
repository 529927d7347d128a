// Package api is the daemon's HTTP and WebSocket front: it decodes, authorises and
// answers. It owns the contract (operations, schemas, codes and statuses, the frames of
// the stream) and the doors that guard it (token, cookie, Host, Origin, body sizes).
//
// It must not know what an operation means: reads go to [Reader], wishes to [Commands],
// the log to package hub. No rule about turns lives here, and no SQL.
//
// [New] registers every operation without touching its dependencies, so that a process
// which opens nothing can print the document (see [Spec]).
package api

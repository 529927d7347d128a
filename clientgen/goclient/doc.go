// Package goclient is the Go client of the daemon: the calls and types generated from
// openapi/openapi.json (client.gen.go), and the stream over a WebSocket, which resumes by
// number and survives restarts (stream.go). It must not know any package of the server:
// the document is all that it stands on.
package goclient

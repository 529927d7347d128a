// Package cli is the command line. It owns flags, what is printed, and exit codes. It
// is a client like any other: apart from serve, which starts the daemon in this process,
// every verb speaks to a running daemon through its HTTP API or reads what the daemon
// leaves in its directory.
//
// It must not know rows, providers' protocols or rules about turns.
//
// # Exit codes
//
// 0 done, 1 failed, 2 wrong usage, 20 no daemon answers. An error is one line on standard
// error that says what happened and what helps.
package cli

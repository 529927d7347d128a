// Package daemon is the composition root: it makes every other package from a
// configuration, runs them together and ends them in the opposite order. Tests start
// the whole daemon with it, on a free port and a directory of their own.
//
// It owns what a directory holds besides the database (the lock, the token, the file
// that says where the daemon listens, the log), the one table that maps provider names
// to constructors, and the order of start and end. It decides nothing about turns.
//
// # Order
//
// Start: directory, lock, token, log, address, strays of an earlier run, database,
// recovery, hub, live, worker, server, listener file. End: listener file, no new
// connections, sockets closed with 1012, worker, provider processes, database, lock.
// Every step of the end is bounded.
package daemon

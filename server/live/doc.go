// Package live holds what runs: one actor for each root session whose provider is
// open. The actor opens and closes the runtime, hands it what people want, and is the
// sink of what it reports: it keeps the order of facts, gathers streaming text into
// chunks, and keeps the cancel boundary of the running execution.
//
// What an actor keeps is routing state, never a second truth: a daemon that starts
// anew learns everything from storage. The package must not know which providers
// there are, what a frame is, or how facts are stored.
//
// # Order and locks
//
// Nothing is shared between two roots but the registry's map, so that one provider
// that hangs holds up nobody else. Within a root, Start and Guide go one at a time;
// Cancel and Answer go at once, for they must reach a provider that is busy or still
// starting. Locks that are held while something waits are channels, not mutexes: a
// synctest bubble, in which all of this is tested, can wait for a channel.
package live

// Package proc runs one provider process and leaves nothing of it behind. It
// owns the process group, the environment the child may see, the stop ladder
// (close stdin, SIGTERM, SIGKILL), the tail of stderr, the search for escaped
// descendants, and finding a command line tool where users install them.
//
// It must not know any provider, nor what is written on the pipes. It imports
// nothing of this module.
//
// # What ends together
//
// The child leads its own process group. When it exits, for whatever reason,
// the rest of the group is killed, then (on Linux) every process that left the
// group but still carries the child's run marker. [Process.Done] closes after
// that. Output that the child wrote before it exited can still be read; a
// descendant that holds the pipe open cannot delay the end of it.
//
// If the daemon itself is killed, Linux kills the child (parent death signal),
// the closed stdin tells the rest, and [Sweep] at the next start ends what
// still carries the daemon's owner marker.
package proc

// Package claude drives the Claude Code program, in its own stream-json form, as a
// provider. It owns what a line of it means, and nothing else: facts go to the sink, and
// when a root turn ends is the gate's to say. There is no other program in between.
//
// # Who a line belongs to
//
// The program speaks for the root agent and for every child on one stream. A child is
// known by the tool call that launched it, from the first sign of that call, and by its
// task id once its task has started; the task id is looked up first, because a later run
// of the same child comes under another call (decisions.md 17). Lines of a child that
// nobody has launched yet are held for it; they never become the root's.
//
// # Provider turns
//
// A provider turn lies between init and result. Only those that a message began name it;
// all others are the provider's own: continuations after a child has ended, and work that
// nobody asked for. A result is not the end of the work: a continuation can follow it
// without any child being live. So the end of the last provider turn is held until the
// program says idle, or begins the next one (decisions.md 16).
//
// # What runs where
//
// One goroutine reads. It, the commands of people and the timers take the runtime's lock
// in turn, and whatever must be written is written after the lock is free, in the order in
// which it was decided (package serial). Nothing else is shared.
package claude

// Package acp drives any program that speaks the Agent Client Protocol, version 1 or 2, as
// a provider. It owns what a message of such an agent means, and nothing else: facts go to
// the sink, and when a root turn ends is the gate's to say. The messages themselves are in
// server/acp.
//
// # Who a line belongs to
//
// A line names the session it is about. The root is the session that we opened; a child is
// one that its immediate parent's stream has announced with a subagent_update, and its
// parent is that stream's session, never what its id looks like. What comes before the
// announcement is held for it. Agents that announce no children have none: a tool called
// Task is a tool.
//
// # Turns
//
// The protocol has no turns. One of a child is opened when its state becomes live and
// closed when it becomes idle; states are levels and may be repeated, or told twice in
// version 2: on the child's own stream and on its parent's. A provider turn of the root is
// one prompt (version 1), or lies between running and idle (version 2).
//
// # What is live
//
// Between the request that loads a session and its answer everything is history: it opens
// no turn, asks nobody and grants nothing. A child can be stopped alone while the agent
// grants it, it is live, and both were said since the last load that succeeded.
//
// # What runs where
//
// One goroutine reads. It, the commands of people and the timers take the runtime's lock
// in turn, and whatever must be written is written after the lock is free, in the order in
// which it was decided (package serial). Only files and terminals that the agent asks for
// are served beside it, because they take time.
package acp

// Package acpagent is the daemon as an agent of the Agent Client Protocol: an editor starts
// it, speaks the protocol on its standard streams, and drives sessions of the running daemon,
// the same that the web view shows. It owns what the editor is told and in which order:
// sessions, messages, tool calls, questions, children and the grants to stop them.
//
// It is a client of the daemon like any other, over HTTP and the event stream, so that
// several editors and the web view are in the same conversation. It must not know storage,
// a provider, or the daemon from inside.
//
// # Who writes what
//
// Each session has one teller, which reads the daemon's log in order and says it to the
// editor in that order. Nothing else speaks on a session's stream, so an announcement
// always precedes what it announces. A slow editor holds its tellers back, and these the
// daemon's stream, which costs no memory.
//
// What the editor asks for never waits for a teller: a stop reads what is true from the
// daemon at that moment, and the newest turn is its target however far the telling lags.
//
// # Grants
//
// An editor may stop a child only while that child's capabilities say so. A grant is given
// while the child's turn runs and the daemon can address it; it is taken back with null
// after the turn's end was told. Taking up a session (load, resume) suspends every grant of
// it when the request is read; only the newest such request restores them, if it succeeds,
// after its answer has been written. One that fails or is withdrawn restores nothing: the
// children work on, and the next good one makes them stoppable again.
//
// # How long a prompt lasts
//
// Until the root turn has settled, which is after everything below it has. Version 1
// answers the prompt then; version 2 answers at once, and its state is running until then.
package acpagent

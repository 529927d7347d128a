// Package agent is the domain: what a session, a turn, an interaction and an
// operation are, and the rules that move them. It imports nothing of ours and
// nothing that has a clock, a context or I/O in it; everything here is a value
// or a pure function.
//
// # The model
//
// A [Session] is one agent's identity and context. A root session is a
// conversation that a person sees; a child session is an agent that a turn of
// another session delegated to. A child's [Relation] says which turn and which
// tool call created it, and never changes.
//
// A [Turn] is one piece of work of one session. Every turn runs under a root
// turn (its own id, for a root). A root turn may own several provider turns: the
// first one, a continuation, a guidance turn. What a provider says of itself is a
// [Fact]; what a person wants is an [Operation]; what was committed is an [Event].
//
// # The rules
//
//   - [Gate] decides what a root turn must be, from everything that can hold it
//     open. Nothing else settles a root turn.
//   - [NextTurn] moves one exact turn, root or child, by what happened to it.
//   - [CancelOutcome] says what a cancel's target becomes, given the evidence.
//   - [NextInteraction] moves a question from pending to its end.
//   - [AdmitChild], [AdmitTurn] and [AdmitProviderTurn] are the fence: what may still
//     start below a root turn.
//
// The order of things is the sequence number of the event log, never a clock; the
// times in these types are for people to read.
package agent

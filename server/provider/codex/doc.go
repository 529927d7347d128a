// Package codex speaks with the real `codex app-server` (codex-cli 0.171.0) over
// stdio and reports what it does in the words of package agent. It owns every
// fact about that wire: which frame is a spawn, whose a thread is, what confirms
// an interrupt. It must not know how facts are stored, when a root turn ends, or
// any other provider.
//
// # How it is put together
//
// One process holds one root thread. All frames are handled one after the other
// in the reading goroutine, under the runtime's lock; calls of the daemon (Start,
// Guide, Cancel, Answer, Forget) take the same lock. Facts are applied under the
// lock, so their order is the order of the wire. Requests are written after the
// lock is released.
//
//   - runtime.go: the lock, requests with bounds, the end of the process
//   - threads.go, adopt.go: whose a thread is; frames that come before their owner
//   - names.go: what a child is called
//   - summon.go: an idle child that is given another task
//   - turns.go: provider turns of the root thread, turns of child threads
//   - items.go, toolcalls.go: items become messages
//   - interact.go, permit.go, elicit.go: approvals and questions
//   - plans.go, shells.go, limits.go: what is told of whole turns, of commands that outlive
//     them, and of the account
//   - guide.go: start and steer
//   - cancel.go: interrupts and what confirms them
//
// # Ownership
//
// A thread is a child only through a spawn edge, or, when that never comes,
// because its turn carries the id of one of this root's provider turns
// (turn.rootTurnId). Everything else of a foreign thread is held, counted and in
// the end dropped. Nothing of it is ever shown as the root's.
package codex

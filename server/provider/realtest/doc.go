// Package realtest holds an adapter against its real program and a scripted model:
// [Alone] is the adapter with a recording sink, [Stack] the adapter under commands, their
// worker, runtimes and storage. Both wait for what is shown, never for time to pass.
//
// At its end a stack checks what must be so whatever the scenario was: who followed the
// event log and its text has exactly what storage reads, nothing is left open, the
// recording of the wire replays to the same end in virtual time, and no process is left.
//
// It knows no provider: a [Setup] brings the adapter, the model and the home. It is for
// tests only and reports through testing.TB.
package realtest

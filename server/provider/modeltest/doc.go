// Package modeltest is the part of a scripted model that is the same whatever API
// it speaks: replies and their steps, gates that a test opens, the book of who asked
// what, a place for the real program to live in, and a look at what it left running.
//
// It must not know an API nor an adapter: a [Dialect] says how one API is read and
// written, and lives beside the provider (codextest, claudetest). It is for tests only
// and reports through testing.TB.
//
// A script gives each agent a list of replies, one for each request the agent makes of
// the model. The agent that the user started is "root" unless its prompt holds
// <<name>>; a sub-agent has the name in the prompt it was started with (see [Mark]), or
// "sub". Steps of a reply are played in order, and a [Gate] step holds it there until
// the test opens the gate, so that every race between agents can be brought about
// without waiting for time to pass.
package modeltest

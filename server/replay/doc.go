// Package replay feeds a recording of a provider's process through the real adapter,
// the real runtimes, the real commands and the real storage, in virtual time, and says
// what it all came to. It owns the driving: the clock, whose moment it is, and reading
// a recorded client as a person. It must not know what a frame means: that is the
// adapter's, and what the recorded client's lines mean is told by the provider's
// package through the dialect interface.
//
// # One thing at a time
//
// The same recording always gives the same end, to the last id. So after every line the
// driver waits until nothing moves: no call into a runtime is under way except those
// that wait for the provider, and the adapter has asked for more input. Timers fire
// between lines, one after the other, when the recording's clock passes them; after
// the last line the clock runs on until none is left.
package replay

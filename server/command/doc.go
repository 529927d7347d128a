// Package command turns what people want into durable wishes and carries them out.
//
// It owns two things. [Service] checks a wish and makes it durable before anything is
// done; the caller gets its answer then. The worker behind it claims operations with a
// lease and carries each out within its bound: a cancel is asked for and completes with
// the evidence there is, an answer is delivered or put back to the person, a message is
// delivered once.
//
// It declares the storage and the live runtimes it needs as [Store] and [Live]. It must
// not know which providers there are, how rows look, or what HTTP is; it decides no
// turn's phase.
package command

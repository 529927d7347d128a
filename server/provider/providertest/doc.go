// Package providertest checks that an adapter keeps the contract of package provider.
//
// It owns three things: [Model], a stand-in for storage built on the rules of package
// agent; [Sink], a recording [provider.Sink] on top of it that any adapter test can
// use; and [Run], the conformance suite that every adapter passes. It knows no provider
// and no database.
package providertest

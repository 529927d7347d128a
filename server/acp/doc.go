// Package acp holds the messages of the Agent Client Protocol, versions 1 and 2, as far as
// the daemon speaks them as a client and as an agent: names of methods, parameters,
// results and the updates of a session, subagents included. It owns how they look as JSON
// and nothing of what they mean. It must not know a connection, a session of ours, or a
// provider, and imports nothing of this module.
//
// # Both versions in one type
//
// Where the versions differ only in which members they have, one type has both; its
// comment says which are whose. What a version does not know stays absent.
//
// # Absent, null and a value
//
// [Opt] tells the three apart, because in a patch they mean unchanged, cleared and
// replaced.
//
// # What is not known
//
// An update, a state or a content of a kind that is not in this package decodes without an
// error and keeps its JSON: agents are newer than their clients, and a session must not
// fail for that.
package acp

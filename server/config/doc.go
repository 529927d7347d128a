// Package config gathers what a person set, from four places: built-in defaults,
// then the file config.toml, then environment variables, then flags, each
// outranking the one before. Every value remembers where it came from.
//
// It owns the names of the keys, their syntax and where things lie on disk. It
// starts nothing, creates nothing and knows no other package of this module.
//
// # Where things lie
//
// Without TURNKEEPER_HOME (or --home) the file is config.toml in
// $XDG_CONFIG_HOME/turnkeeper and everything the daemon writes is below
// $XDG_STATE_HOME/turnkeeper. With it both are in that one directory, so that a
// second daemon on another home shares nothing with the first.
package config

//go:build race

package daemon

// kills is smaller here: under the race detector a start takes ten times as long.
const kills = 20

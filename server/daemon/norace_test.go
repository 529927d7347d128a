//go:build !race

package daemon

// kills is how often TestRecovery kills the daemon.
const kills = 100

//go:build race

package replay

// raceEnabled has the longest tests take a sample: the detector looks for races, not for
// orders or moments.
const raceEnabled = true

//go:build race

package store

// raceEnabled tells the longest tests to take a sample: under the detector everything takes
// about eight times as long, and it looks for races, not for orders.
const raceEnabled = true

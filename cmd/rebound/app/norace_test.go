//go:build !race

package app_test

// raceEnabled reports that the race detector makes everything ten times as slow.
const raceEnabled = false

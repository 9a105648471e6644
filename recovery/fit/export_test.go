package fit

import (
	"context"
	"time"
)

// Flush waits until what was settled is stored.
func (f *Fitter) Flush() bool {
	done := make(chan struct{})
	if !f.memory.later(func(context.Context) { close(done) }) {
		return false
	}
	<-done
	return true
}

// NewWindows are windows that several fitters share.
func NewWindows() Windows { return newWindows(time.Hour) }

// Bare leaves the program's own lists out of summaries.
func (f *Fitter) Bare() { f.bare = true }

// Compressed reports text that replaces something.
func Compressed(text string) bool { return compressed(text) }

// RaceEnabled is set under the race detector, where long replays say nothing new.
const RaceEnabled = raceEnabled

package repair

import (
	"path"
	"slices"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// guarded reports whether a tool changes something, so that nothing about its
// calls may be guessed. A false positive costs one more request; a false negative
// may do harm.
func (m *Mender) guarded(t *transcript.Tool) bool {
	return matches(m.cfg.Destructive, t.Name) || !matches(m.cfg.Safe, t.Name) && trajectory.Changes(*t)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

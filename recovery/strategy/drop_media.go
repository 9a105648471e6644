package strategy

import "github.com/rebound-llm/rebound/recovery"

// DropMedia puts a short text in the place of attachments that a target
// refuses, where the configuration allows it: the model then answers without
// having seen them.
type DropMedia struct{}

// Name is the name that plans use.
func (DropMedia) Name() string { return "drop_media" }

// Propose implements recovery.Strategy.
func (DropMedia) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if s.Config.Media != recovery.MediaDrop {
		return recovery.Action{}, false
	}
	return mended(s, f, recovery.Edit{Mend: recovery.MendMedia})
}

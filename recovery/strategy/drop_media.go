package strategy

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// DropMedia replaces attachments that a target refuses with a short text, if the configuration allows it; the model then
// answers without having seen them. If a request only has too many, it replaces the oldest ones of finished turns, which
// the model has answered already, whatever the configuration.
func DropMedia(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if m := mostImages.FindStringSubmatch(strings.ToLower(f.Signal.Message)); m != nil {
		if a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformMedia, Field: m[1] + m[2]}); ok {
			return a, true
		}
	}
	if s.Config.Media != recovery.MediaDrop {
		return recovery.Action{}, false
	}
	return withEdit(s, f, recovery.Edit{Conform: recovery.ConformMedia})
}

// mostImages matches the number of images that a refusal allows, as in "request contains
// 52 images, exceeding the maximum of 50 allowed per request" or "too many images and documents: 52 + 0 > 50".
var mostImages = recovery.NewPattern(`(?:images[^:]{0,60}?(?:: \d+(?: \+ \d+)?[.,]? )?(?:maximum|limit|at most|up to|max|>)(?: allowed| of| is)*:? (\d{1,3})(?: (?:allowed|images|per|are)|[.)]*$)|at most (\d{1,3}) images?)`)

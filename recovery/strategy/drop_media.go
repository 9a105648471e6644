package strategy

import (
	"regexp"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// DropMedia puts a short text in the place of attachments that a target
// refuses, where the configuration allows it: the model then answers without
// having seen them. Where there are only too many, the oldest of finished turns go,
// which the model has answered already.
type DropMedia struct{}

// Name is the name that plans use.
func (DropMedia) Name() string { return "drop_media" }

// Propose implements recovery.Strategy.
func (DropMedia) Propose(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if m := mostImages.FindStringSubmatch(strings.ToLower(f.Signal.Message)); m != nil {
		if a, ok := mended(s, f, recovery.Edit{Mend: recovery.MendMedia, Field: m[1] + m[2]}); ok {
			return a, true
		}
	}
	if s.Config.Media != recovery.MediaDrop {
		return recovery.Action{}, false
	}
	return mended(s, f, recovery.Edit{Mend: recovery.MendMedia})
}

// mostImages finds the number of images that a refusal allows, as in "request contains
// 52 images, exceeding the maximum of 50 allowed per request" or "too many images and documents: 52 + 0 > 50".
var mostImages = regexp.MustCompile(`(?:images[^:]{0,60}?(?:: \d+(?: \+ \d+)?[.,]? )?(?:maximum|limit|at most|up to|max|>)(?: allowed| of| is)*:? (\d{1,3})(?: (?:allowed|images|per|are)|[.)]*$)|at most (\d{1,3}) images?)`)

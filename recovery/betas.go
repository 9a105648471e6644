package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Betas are the sorted names of the features in test that a request asks for with the header anthropic-beta.
type Betas []string

// Known returns the target under which it is known what it refuses of requests with these betas.
func (b Betas) Known(t Target) Target {
	if len(b) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(b, ",")))
		t.Model += " (betas " + hex.EncodeToString(sum[:4]) + ")"
	}
	return t
}

// Refused returns the betas that a target does not get after edits.
func (b Betas) Refused(edits []Edit) (gone []string) {
	for _, name := range b {
		if slices.ContainsFunc(edits, func(ed Edit) bool { return ed.Conform == ConformBetas && (ed.Field == "" || ed.Field == name) }) {
			gone = append(gone, name)
		}
	}
	return gone
}

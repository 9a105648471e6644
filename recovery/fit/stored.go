package fit

import (
	"encoding/json"
	"errors"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/store"
)

// session is what is remembered of one conversation. Its only texts are encrypted. It is
// immutable once shared.
//
// It is stored as two values: the edits, which change rarely and are written before the
// answer that they made possible leaves, and the report, which is written after each
// answer. So a late report of one replica never overwrites another's new edits.
type session struct {
	edits
	report
}

// edits are the edits of a session, and what its last refusal showed.
type edits struct {
	Gen     uint64    `json:"gen"`              // grows with every change
	Written uint64    `json:"written"`          // when they were last stored, in Unix seconds
	Scale   uint32    `json:"scale,omitempty"`  // the upstream's tokens per thousand of ours; 0 unknown
	Window  uint32    `json:"window,omitempty"` // of the target that refused, in tokens; 0 unknown
	Target  uint64    `json:"target,omitempty"` // hash of that target
	Recipes []recipe  `json:"recipes,omitempty"`
	Sealed  []*sealed `json:"sealed,omitempty"`
}

// report is what the last answer's usage showed.
type report struct {
	Truncated bool         `json:"short,omitempty"` // the target silently dropped a part of the prompt
	Anchor    count.Anchor `json:"anchor"`
}

// edited reports whether there are edits.
func (s *session) edited() bool { return s != nil && len(s.Recipes)+len(s.Sealed) > 0 }

// The limits of a stored session. What exceeds them is not stored.
const (
	maxRecipes = 8 << 10
	maxSealed  = 256
	maxSpan    = 1 << 20
	maxBox     = 640 << 10 // a digest for a window of 400,000 tokens; longer ones are not made
)

// codeVersion is the version of the stored format; other versions are not read. Version 4
// numbered the ops differently; earlier ones were not JSON.
const codeVersion = 5

var errSession = errors.New("the value is not a session of this version")

// The values as they are stored.
type (
	storedEdits struct {
		Version int `json:"v"`
		edits
	}
	storedReport struct {
		Version int `json:"v"`
		report
	}
)

// encode returns the edits for the store. If they exceed the limits, it drops the last
// in the history.
func (s edits) encode() []byte {
	c := storedEdits{codeVersion, s}
	c.Recipes, c.Sealed = s.Recipes[:min(len(s.Recipes), maxRecipes)], nil
	size := 256 + 64*len(c.Recipes)
	for _, box := range s.Sealed {
		if size += len(box.Box)*4/3 + 8*len(box.Kept) + 128; len(c.Sealed) == maxSealed || size > store.MaxValue || len(box.Box) > maxBox {
			break
		}
		c.Sealed = append(c.Sealed, box)
	}
	b, _ := json.Marshal(c) // numbers and bytes only
	return b
}

// decodeSession reads encoded edits. It rejects what encode does not write.
func decodeSession(b []byte) (*session, error) {
	var c storedEdits
	if len(b) > store.MaxValue || json.Unmarshal(b, &c) != nil || c.Version != codeVersion || len(c.Recipes) > maxRecipes || len(c.Sealed) > maxSealed ||
		c.Window > maxWindow {
		return nil, errSession
	}
	for _, r := range c.Recipes {
		if r.Length > maxKeep || r.Op < opShorten || r.Op > opMedia {
			return nil, errSession
		}
	}
	for _, e := range c.Sealed {
		if e == nil || e.Span < 1 || e.Span > maxSpan || len(e.Box) > maxBox || e.Op != opCut && !(e.Op == opSealed && e.Span == 1) {
			return nil, errSession
		}
		last := -1
		for _, n := range e.Kept {
			if n <= last || n >= e.Span {
				return nil, errSession
			}
			last = n
		}
	}
	return &session{edits: c.edits}, nil
}

// encode returns the report for the store.
func (r report) encode() []byte {
	b, _ := json.Marshal(storedReport{codeVersion, r}) // numbers only
	return b
}

// decodeReport reads an encoded report. It rejects what encode does not write.
func decodeReport(b []byte) (report, error) {
	var c storedReport
	if len(b) > maxReport || json.Unmarshal(b, &c) != nil || c.Version != codeVersion || c.Anchor.Doubt != nil && c.Anchor.Doubt.Doubt != nil {
		return report{}, errSession
	}
	return c.report, nil
}

// maxReport limits a stored report, in bytes.
const maxReport = 4 << 10

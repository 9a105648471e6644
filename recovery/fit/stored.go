package fit

import (
	"encoding/json"
	"errors"

	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/store"
)

// session is what is remembered of one conversation. It holds no text but what
// is sealed. A value is never changed once it is shared.
//
// It is stored as two values: the edits, which change rarely and are written
// before the answer that they made possible is, and what the last answer
// reported, which is written behind each. So a late report of one replica never
// takes the place of another's new edits.
type session struct {
	edits
	report
}

// edits are those of a session.
type edits struct {
	Gen     uint64    `json:"gen"`              // grows with every change of the edits
	Written uint64    `json:"written"`          // when they were last stored, in Unix seconds
	Scale   uint32    `json:"scale,omitempty"`  // tokens that upstreams count for a thousand of ours; 0 unknown
	Window  uint32    `json:"window,omitempty"` // of the target that refused, 0 unknown
	Target  uint64    `json:"target,omitempty"` // hash of that target
	Recipes []recipe  `json:"recipes,omitempty"`
	Sealed  []*sealed `json:"sealed,omitempty"`
}

// report is what the last answer said of its prompt.
type report struct {
	Truncated bool         `json:"short,omitempty"` // the target was seen to drop a part of a prompt in silence
	Anchor    count.Anchor `json:"anchor"`
}

// edited reports whether there are edits.
func (s *session) edited() bool { return s != nil && len(s.Recipes)+len(s.Sealed) > 0 }

// The bounds of a session's value. What exceeds them is not kept.
const (
	maxRecipes = 8 << 10
	maxSealed  = 256
	maxSpan    = 1 << 20
	maxBox     = 256 << 10
)

// codeVersion tells the values of this program from those of another, whose
// edits are none of ours. Version 4 numbered the edits otherwise; those before
// were no JSON.
const codeVersion = 5

var errSession = errors.New("the value is no session of this version")

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

// encode is the value of the edits for the store. Where they are too many the newest
// are lost.
func (s edits) encode() []byte {
	c := storedEdits{codeVersion, s}
	c.Recipes, c.Sealed = s.Recipes[:min(len(s.Recipes), maxRecipes)], nil
	size := 0
	for _, box := range s.Sealed {
		if size += len(box.Box)*4/3 + 8*len(box.Kept) + 128; len(c.Sealed) == maxSealed || size > store.MaxValue/2 || len(box.Box) > maxBox {
			break
		}
		c.Sealed = append(c.Sealed, box)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil // numbers and bytes: it cannot be
	}
	return b
}

// decodeSession reads the edits. What encode does not write is an error.
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

// encodedEdits is the value of what is held of a session's edits; nil if nothing is.
func (s *session) encodedEdits() []byte {
	if s == nil {
		return nil
	}
	return s.edits.encode()
}

// encodedReport is the same for its report.
func (s *session) encodedReport() []byte {
	if s == nil {
		return nil
	}
	return s.report.encode()
}

// encode is the value of the report for the store.
func (r report) encode() []byte {
	b, err := json.Marshal(storedReport{codeVersion, r})
	if err != nil {
		return nil // numbers: it cannot be
	}
	return b
}

// decodeReport reads a report. What encode does not write is an error.
func decodeReport(b []byte) (report, error) {
	var c storedReport
	if len(b) > maxReport || json.Unmarshal(b, &c) != nil || c.Version != codeVersion || c.Anchor.Doubt != nil && c.Anchor.Doubt.Doubt != nil {
		return report{}, errSession
	}
	return c.report, nil
}

// maxReport bounds a report, in bytes.
const maxReport = 4 << 10

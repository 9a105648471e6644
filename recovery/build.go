package recovery

import (
	"bytes"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// build makes the copy of the request that goes to a candidate: always from
// the client's bytes, or the fitted copy of them, so that try n equals try 1,
// and those very bytes where nothing has to change.
func (r *run) build(c *Choice, a Action) (body []byte, edited bool, err error) {
	x := r.x
	b := x.current()
	edited = b != x.Body
	var learned []Edit
	guidance := ""
	if !x.plain && x.Mode != ModeOff {
		guidance = x.Guidance
	}
	if !x.plain && x.Mode == ModeAct {
		learned = r.Knowledge.Edits(c.Target)
	}
	prefill := a.Resume != nil && a.Resume.Prefill
	if c.Model == b.Model() && len(learned)+len(c.Edits) == 0 && guidance+a.Note+a.Tool == "" && !prefill {
		return b.Raw(), edited, nil
	}
	e := b.Edit()
	if c.Model != b.Model() {
		e.SetModel(c.Model)
	}
	changed := false
	for _, list := range [2][]Edit{learned, c.Edits} {
		for _, ed := range list {
			changed = r.Engine.apply(b, e, ed) || changed
		}
	}
	if changed && len(c.Edits) == 0 {
		x.act("learned") // an earlier request found out what this target refuses
	}
	for _, note := range [2]string{guidance, a.Note} {
		if note != "" {
			e.AppendNote(note)
			changed = true
		}
	}
	if guidance != "" {
		x.act("guidance")
	}
	switch a.Tool {
	case "":
	case ToolNone:
		e.ForbidCalls()
		changed = true
	default:
		e.ForceCall(a.Tool)
		changed = true
	}
	if prefill {
		e.Continue(a.Resume.Sent, string(c.Prefill))
		changed = true
	}
	if body, err = e.Apply(); err != nil && changed {
		return r.bare(c)
	}
	return body, edited || changed, err
}

// bare is the client's own request for a candidate, where the edits of it
// contradict one another.
func (r *run) bare(c *Choice) ([]byte, bool, error) {
	b := r.x.Body
	if c.Model == b.Model() {
		return b.Raw(), false, nil
	}
	body, err := b.Edit().SetModel(c.Model).Apply()
	return body, false, err
}

// changes reports whether a candidate's request would be another with one more edit.
func (r *run) changes(candidate int, ed Edit) bool {
	b := r.x.current()
	c := &r.x.Candidates[candidate]
	list := append(append([]Edit(nil), r.Knowledge.Edits(c.Target)...), c.Edits...)
	before, err := r.Edited(b, list)
	if err != nil {
		return false
	}
	after, err := r.Edited(b, append(list, ed))
	return err == nil && !bytes.Equal(before, after)
}

// Edited is a body after a target's edits.
func (e *Engine) Edited(b *transcript.Body, edits []Edit) ([]byte, error) {
	edit := b.Edit()
	for _, ed := range edits {
		e.apply(b, edit, ed)
	}
	return edit.Apply()
}

// apply adds one edit where the request has what it changes.
func (e *Engine) apply(b *transcript.Body, edit *transcript.Edit, ed Edit) bool {
	switch {
	case ed.Mend != "":
		return e.Conformer != nil && e.Conformer.Conform(b, edit, ed)
	case ed.Role != "":
		edit.SetRole(ed.Role, ed.Rename)
		return true
	case ed.Drop:
		if _, ok := b.Field(ed.Field); !ok {
			return false
		}
		edit.Delete(ed.Field)
	case ed.Rename != "":
		if _, ok := b.Field(ed.Field); !ok {
			return false
		}
		if _, both := b.Field(ed.Rename); both {
			edit.Delete(ed.Field)
		} else {
			edit.Rename(ed.Field, ed.Rename)
		}
	case ed.Clamp > 0:
		n, ok := b.Int(ed.Field)
		if !ok || n <= ed.Clamp {
			return false
		}
		edit.SetInt(ed.Field, ed.Clamp)
	}
	return true
}

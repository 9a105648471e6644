package recovery

import "github.com/rebound-llm/rebound/recovery/transcript"

// build makes the copy of the request that goes to a candidate: always from
// the client's bytes, so that try n equals try 1, and those very bytes where
// nothing has to change.
func (r *run) build(c *Choice, resume *Resume) (body []byte, edited bool, err error) {
	b := r.x.Body
	var learned []Edit
	if !r.x.plain && r.x.Mode == ModeAct {
		learned = r.Knowledge.Edits(c.Target)
	}
	prefill := resume != nil && resume.Prefill
	if c.Model == b.Model() && len(learned)+len(c.Edits) == 0 && !prefill {
		return b.Raw(), false, nil
	}
	e := b.Edit()
	if c.Model != b.Model() {
		e.SetModel(c.Model)
	}
	for _, list := range [2][]Edit{learned, c.Edits} {
		for _, ed := range list {
			edited = apply(b, e, ed) || edited
		}
	}
	if edited && len(c.Edits) == 0 {
		r.x.act("learned") // an earlier request found out what this target refuses
	}
	if prefill {
		e.Continue(resume.Sent, string(c.Prefill))
		edited = true
	}
	body, err = e.Apply()
	return body, edited, err
}

// apply adds one edit where the request has what it changes.
func apply(b *transcript.Body, e *transcript.Edit, ed Edit) bool {
	switch {
	case ed.Role != "":
		e.SetRole(ed.Role, ed.Rename)
		return true
	case ed.Drop:
		if _, ok := b.Field(ed.Field); !ok {
			return false
		}
		e.Delete(ed.Field)
	case ed.Rename != "":
		if _, ok := b.Field(ed.Field); !ok {
			return false
		}
		if _, both := b.Field(ed.Rename); both {
			e.Delete(ed.Field)
		} else {
			e.Rename(ed.Field, ed.Rename)
		}
	case ed.Clamp > 0:
		n, ok := b.Int(ed.Field)
		if !ok || n <= ed.Clamp {
			return false
		}
		e.SetInt(ed.Field, ed.Clamp)
	}
	return true
}

package recovery

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// build makes the copy of the request that goes to a candidate: always from
// the client's bytes, or the fitted copy of them, so that try n equals try 1,
// and those very bytes where nothing has to change.
func (r *run) build(c *Choice, a Action) (body []byte, edited bool, err error) {
	if !r.guard("editor", func() { body, edited, err = r.edit(c, a) }) || err != nil {
		return r.bare(c, a)
	}
	return body, edited, nil
}

// edit makes the request with all that a candidate and an action need.
func (r *run) edit(c *Choice, a Action) (body []byte, edited bool, err error) {
	x := r.x
	b := x.current()
	edited = b != x.Body
	var learned []Edit
	guidance := ""
	if !x.plain && x.Mode != ModeOff && x.state.MayNote() {
		guidance = x.Guidance
	}
	if !x.plain && x.Mode == ModeAct {
		learned = r.Knowledge.Edits(c.Target)
	}
	if a.Resume != nil && (a.Resume.Calls || a.Resume.Way == WayReplay || a.Resume.Way == WayListen || a.Resume.fetches()) {
		a.Resume = nil // the same request again
	}
	if c.Model == b.Model() && len(learned)+len(c.Edits) == 0 && guidance+a.Note+a.Tool == "" && a.Output == 0 && a.Resume == nil {
		return b.Raw(), edited, nil
	}
	suited, err := r.suited(b, append(learned[:len(learned):len(learned)], c.Edits...))
	if err != nil {
		return nil, false, err
	}
	changed := suited != b
	c.learned = changed && len(learned) > 0
	if changed && len(c.Edits) == 0 {
		x.Did("learned") // an earlier request found out what this target refuses
	}
	if changed && slices.ContainsFunc(c.Edits, func(ed Edit) bool { return ed.Mend == MendReasoning }) {
		x.Did("drop_reasoning")
	}
	e := suited.Edit()
	if c.Model != b.Model() {
		e.SetModel(c.Model)
	}
	if guidance != "" {
		x.Did("guidance")
	}
	if r.ask(e, suited, c, a, guidance) {
		changed = true
	}
	body, err = e.Apply()
	return body, edited || changed, err
}

// ask writes what an attempt asks of the model besides what the client does: notes, a
// tool, a limit, to go on where an answer broke. False is nothing.
func (r *run) ask(e *transcript.Edit, b *transcript.Body, c *Choice, a Action, guidance string) (changed bool) {
	if guidance != "" || a.Note != "" {
		e.AppendNote(joined(guidance, a.Note))
		changed = true
	}
	tool := a.Tool
	if tool == "" && guidance != "" && a.Resume == nil {
		tool = r.x.Force
	}
	switch tool {
	case "":
	case ToolNone:
		e.ForbidCalls()
		changed = true
	default:
		e.ForceCall(tool)
		changed = true
	}
	if a.Output > 0 {
		e.SetInt(b.OutputField(), a.Output)
		changed = true
	}
	if resume := a.Resume; resume != nil {
		if resume.Way == WayPrefill {
			e.Continue(resume.Sent, string(c.Prefill))
		} else {
			e.Interrupt(resume.Sent, resume.Question)
		}
		if field, n, ok := b.OutputLimit(); ok {
			e.SetInt(field, max(1, n-resume.spared()))
		}
		changed = true
	}
	return changed
}

// joined is one note made of two.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// bare is the request for a candidate without any edit, where the edits of it
// cannot be carried out. An attempt that asks the model for something else than the
// client did, to go on or to answer anew, is not made without its edit.
func (r *run) bare(c *Choice, a Action) ([]byte, bool, error) {
	b := r.x.current()
	if a.Reask || a.Explain || a.carried || a.Resume != nil {
		return nil, false, errBare
	}
	if c.Model == b.Model() {
		return b.Raw(), b != r.x.Body, nil
	}
	body, err := b.Edit().SetModel(c.Model).Apply()
	return body, b != r.x.Body, err
}

var errBare = errors.New("what this attempt asks of the model cannot be added")

// changes reports whether a candidate's request would be another with one more edit.
func (r *run) changes(candidate int, ed Edit) bool {
	b := r.x.current()
	c := &r.x.Candidates[candidate]
	list := append(append([]Edit(nil), r.Knowledge.Edits(c.Target)...), c.Edits...)
	before, err := r.suited(b, list)
	if err != nil {
		return false
	}
	after, err := r.suited(before, []Edit{ed})
	return err == nil && !bytes.Equal(before.Raw(), after.Raw())
}

// Edited is a body after a target's edits.
func (e *Engine) Edited(b *transcript.Body, edits []Edit) ([]byte, error) {
	b, err := e.suited(b, edits)
	if err != nil {
		return nil, err
	}
	return b.Raw(), nil
}

// suited is a body after a target's edits, b itself where none changes it.
// Limits come after other fields, whose names may change, and mends of the history one
// after the other: each sees what those before it have done.
func (e *Engine) suited(b *transcript.Body, edits []Edit) (*transcript.Body, error) {
	for _, clamps := range [...]bool{false, true} {
		var fields *transcript.Edit
		for _, ed := range edits {
			if ed.Mend != "" || ed.Clamp > 0 != clamps {
				continue
			}
			if fields == nil {
				fields = b.Edit()
			}
			e.apply(b, fields, ed)
		}
		if fields != nil && fields.Changed() {
			var err error
			if b, err = fields.Body(); err != nil {
				return nil, err
			}
		}
	}
	for _, ed := range inOrder(edits) {
		edit := b.Edit()
		if !e.apply(b, edit, ed) {
			continue
		}
		next, err := edit.Body()
		if err != nil {
			return nil, err
		}
		b = next
	}
	return b, nil
}

// inOrder is the mends among edits in the order in which they work, whatever
// the order in which they were found necessary.
func inOrder(edits []Edit) (mends []Edit) {
	for _, ed := range edits {
		if ed.Mend != "" {
			mends = append(mends, ed)
		}
	}
	slices.SortStableFunc(mends, func(a, b Edit) int { return cmp.Compare(mendRank(a.Mend), mendRank(b.Mend)) })
	return mends
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
		v, ok := b.Field(ed.Field)
		if !ok || ed.Value != "" && string(v) != ed.Value {
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
		field, n, ok := b.OutputLimit() // which may have got another name than the edit knows
		if !ok || n <= ed.Clamp {
			return false
		}
		edit.SetInt(field, ed.Clamp)
	}
	return true
}

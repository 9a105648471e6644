package recovery

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// build returns the copy of the request that goes to a candidate. It always starts from the client's bytes, or from the
// fitted request, so that edits of earlier attempts never add up, and returns the same bytes if nothing has to change.
// edited means by more than the model's name.
func (r *run) build(c *Choice, a Action) (body []byte, edited bool, err error) {
	if !r.guard("editor", func() { body, edited, err = r.edit(c, a) }) || err != nil {
		return r.unedited(c, a)
	}
	return body, edited, nil
}

// edit returns the request with all edits that a candidate and an action need.
func (r *run) edit(c *Choice, a Action) (body []byte, edited bool, err error) {
	x := r.x
	b := x.current()
	edited, c.noBetas = b != x.Body, nil
	var learned []Edit
	guidance := ""
	if !x.plain && x.Mode != ModeOff && x.state.MayNote() {
		guidance = x.Guidance
	}
	if !x.plain && x.Mode == ModeAct {
		learned = r.Knowledge.Edits(r.x.Known(c.Target))
	}
	if a.Resume != nil && (a.Resume.Calls || a.Resume.Way == WayReplay || a.Resume.Way == WayListen || a.Resume.fetches()) {
		a.Resume = nil // the same request is sent again
	}
	if c.Model == b.Model() && len(learned)+len(c.Edits) == 0 && guidance+a.Note+a.Tool == "" && a.Output == 0 && a.Resume == nil {
		return b.Raw(), edited, nil
	}
	edits := append(learned[:len(learned):len(learned)], c.Edits...)
	suited, err := r.withEdits(b, edits)
	if err != nil {
		return nil, false, err
	}
	c.noBetas = x.Betas.Refused(edits)
	changed := suited != b || len(c.noBetas) > 0
	c.learned = changed && len(learned) > 0
	if changed && len(c.Edits) == 0 {
		x.Did("learned") // an earlier request showed what this target refuses
	}
	if suited != b && slices.ContainsFunc(c.Edits, func(ed Edit) bool { return ed.Conform == ConformReasoning }) {
		x.Did("drop_reasoning")
	}
	e := suited.Edit()
	if c.Model != b.Model() {
		e.SetModel(c.Model)
	}
	if guidance != "" {
		x.Did("guidance")
	}
	if r.addActionEdits(e, suited, c, a, guidance) {
		changed = true
	}
	body, err = e.Apply()
	return body, edited || changed, err
}

// addActionEdits adds to the request what the action asks of the model: notes, a tool choice, an output limit, the
// continuation of a broken answer. It reports whether it added anything.
func (r *run) addActionEdits(e *transcript.Editor, b *transcript.Body, c *Choice, a Action, guidance string) (changed bool) {
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
			e.SetInt(field, max(1, n-resume.tokensSaved()))
		}
		changed = true
	}
	return changed
}

// joined returns both notes with an empty line between them.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// unedited returns the request for a candidate with no edit but the model's name; build uses it if the edits fail. It
// returns errBare for an attempt that makes no sense without its edits, such as a continuation.
func (r *run) unedited(c *Choice, a Action) ([]byte, bool, error) {
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

var errBare = errors.New("the edits of this attempt cannot be made")

// changes reports whether one more edit would change a candidate's request.
func (r *run) changes(candidate int, ed Edit) bool {
	b := r.x.current()
	c := &r.x.Candidates[candidate]
	list := append(append([]Edit(nil), r.Knowledge.Edits(r.x.Known(c.Target))...), c.Edits...)
	if ed.Conform == ConformBetas {
		return len(r.x.Betas.Refused(append(list, ed))) > len(r.x.Betas.Refused(list))
	}
	before, err := r.withEdits(b, list)
	if err != nil {
		return false
	}
	after, err := r.withEdits(before, []Edit{ed})
	return err == nil && !bytes.Equal(before.Raw(), after.Raw())
}

// Edited returns a body after a target's edits.
func (e *Engine) Edited(b *transcript.Body, edits []Edit) ([]byte, error) {
	b, err := e.withEdits(b, edits)
	if err != nil {
		return nil, err
	}
	return b.Raw(), nil
}

// withEdits returns a body after a target's edits, b itself if none changes it. Clamps run after the other field edits,
// which may rename the limit. Conforming edits run one after the other, so that each sees the result of the one before.
func (e *Engine) withEdits(b *transcript.Body, edits []Edit) (*transcript.Body, error) {
	for _, clamps := range [...]bool{false, true} {
		var fields *transcript.Editor
		for _, ed := range edits {
			if ed.Conform != "" || ed.Clamp > 0 != clamps {
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

// inOrder returns the conforming edits among edits, sorted by conformRank.
func inOrder(edits []Edit) (conforming []Edit) {
	for _, ed := range edits {
		if ed.Conform != "" {
			conforming = append(conforming, ed)
		}
	}
	slices.SortStableFunc(conforming, func(a, b Edit) int { return cmp.Compare(conformRank(a.Conform), conformRank(b.Conform)) })
	return conforming
}

// apply adds one edit; it returns false if the edit does not apply to the request.
func (e *Engine) apply(b *transcript.Body, edit *transcript.Editor, ed Edit) bool {
	switch {
	case ed.Conform != "":
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
		field, n, ok := b.OutputLimit() // another edit may have renamed it
		if !ok || n <= ed.Clamp {
			return false
		}
		edit.LowerOutput(field, ed.Clamp)
	}
	return true
}

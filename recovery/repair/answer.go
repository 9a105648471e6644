package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// compressed is how compressed content begins, also inside of JSON in a string.
var compressed = regexp.MustCompile(`\{\s*\\*"_compressed\\*"\s*:\s*true`)

// imitation finds the gateway's marks of compressed content in an answer. A
// client whose own request speaks of them works on such things.
func imitation(req *transcript.Body, d recovery.Draft) *recovery.Flaw {
	const word = "_compressed"
	imitates := func(s string) bool {
		return strings.Contains(s, word) && compressed.MatchString(s) && !bytes.Contains(req.Raw(), []byte(word))
	}
	const problem = "it contains a marker of compressed history; write the actual content, or read it again with a tool"
	for _, c := range d.Calls {
		if imitates(c.Arguments) {
			return &recovery.Flaw{Kind: recovery.FlawMark, Quote: c.Arguments, Problem: problem}
		}
	}
	if d.Shown == 0 && imitates(d.Text) {
		return &recovery.Flaw{Kind: recovery.FlawMark, Quote: d.Text, Problem: problem}
	}
	return nil
}

// unpack takes apart the wrapper in which some models put parallel calls.
func (j *job) unpack(list []recovery.DraftCall) (out []recovery.DraftCall, found bool) {
	wrapper := func(c recovery.DraftCall) bool {
		if j.tools.named(c.Name) != nil {
			return false
		}
		name := bare(c.Name)
		return name == "multi_tool_use.parallel" || name == "parallel"
	}
	if !slices.ContainsFunc(list, wrapper) {
		return nil, false
	}
	for _, c := range list {
		if !wrapper(c) {
			out = append(out, c)
			continue
		}
		v, rules, err := readTolerant(c.Arguments, false)
		if err != nil || len(rules) > 0 || len(v.members) != 1 || v.members[0].val.kind != kindArray || len(v.members[0].val.items) > maxCalls {
			return nil, false
		}
		for _, use := range v.members[0].val.items {
			name, args := use.get("recipient_name"), use.get("parameters")
			if len(use.members) != 2 || name == nil || args == nil || name.kind != kindString {
				return nil, false
			}
			call := recovery.DraftCall{Kind: transcript.KindFunction, Name: name.str(), Arguments: args.render()}
			if short := bare(call.Name); j.tools.named(short) != nil {
				call.Name = short
			}
			out = append(out, call)
		}
		found = true
	}
	if found {
		j.mended("", ruleParallel)
	}
	return out, found
}

// ids gives calls without an id, or with one that occurred before, a fresh one.
// It depends on nothing but the answer.
func (j *job) ids(list []recovery.DraftCall) []recovery.DraftCall {
	if len(list) == 1 && strings.TrimSpace(list[0].ID) != "" {
		return list
	}
	taken := make(map[string]bool, len(list)) // false: by a call that is still to come
	for _, c := range list {
		taken[c.ID] = false
	}
	var out []recovery.DraftCall
	for i, c := range list {
		if used := taken[c.ID]; strings.TrimSpace(c.ID) != "" && !used {
			taken[c.ID] = true
			continue
		}
		if out == nil {
			out = slices.Clone(list)
		}
		for n := 0; ; n++ {
			sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s\x00%s", i, n, c.Name, c.Arguments))
			id := "call_" + hex.EncodeToString(sum[:12])
			if _, known := taken[id]; !known {
				taken[id], out[i].ID = true, id
				break
			}
		}
	}
	if out == nil {
		return list
	}
	if !j.leaked {
		j.mended("", ruleIDs)
	}
	return out
}

// missing finds that a required call is not there.
func (j *job) missing() *recovery.Flaw {
	if j.draft.Finish == recovery.FinishLength || j.draft.Finish == recovery.FinishFilter || !j.tools.some {
		return nil
	}
	flaw := func(problem string) *recovery.Flaw {
		return &recovery.Flaw{Kind: recovery.FlawMissing, Quote: j.draft.Text, Problem: problem}
	}
	switch c := j.tools.choice; {
	case c.Choice == transcript.ChoiceNamed:
		f := flaw("a call of " + strconv.Quote(trajectory.Shorten(c.Name, 100)) + " is required, and the answer has none")
		if j.tools.named(c.Name) != nil {
			f.Tool = c.Name
		}
		return f
	case j.draft.Finish == recovery.FinishCalls && strings.TrimSpace(j.draft.Text) == "":
		return flaw("the answer announces a tool call and has none")
	case c.Choice == transcript.ChoiceRequired, c.Choice == transcript.ChoiceAuto && j.cfg.EmptyCall:
		return flaw("a tool call is required, and the answer has none")
	}
	return nil
}

// probe is the output limit in tokens up to which a client asks whether a model
// is there, rather than for an answer.
const probe = 256

// unsaid finds that a model has thought and then said nothing.
func (j *job) unsaid() *recovery.Flaw {
	d := &j.draft
	if !d.Unsaid || d.Shown > 0 || d.Finish == recovery.FinishFilter || d.Finish == recovery.FinishNone {
		return nil
	}
	if _, limit, ok := j.req.OutputLimit(); ok && limit <= probe {
		return nil
	}
	f := &recovery.Flaw{Kind: recovery.FlawUnsaid, Limited: d.Finish == recovery.FinishLength, Problem: "it was reasoning only, with neither text nor a tool call"}
	if f.Limited {
		f.Problem = "the output limit was reached before the answer began; think briefly, then answer"
	}
	return f
}

// another finds that a certain tool was demanded and only others were called.
func (j *job) another(calls []recovery.DraftCall) *recovery.Flaw {
	want := j.tools.choice.Name
	if j.tools.choice.Choice != transcript.ChoiceNamed || j.tools.named(want) == nil ||
		slices.ContainsFunc(calls, func(c recovery.DraftCall) bool { return c.Name == want }) {
		return nil
	}
	return &recovery.Flaw{Kind: recovery.FlawMissing, Tool: want, Quote: calls[0].Name + "(" + calls[0].Arguments + ")",
		Problem: "a call of " + strconv.Quote(trajectory.Shorten(want, 100)) + " is required, and the answer calls another tool"}
}

// ending makes the reason to end agree with the content. A server that was told
// which tool to call says "stop", and means it.
func (j *job) ending(calls int) {
	switch f := j.draft.Finish; {
	case calls > 0 && f == recovery.FinishStop && (j.leaked || j.tools.choice.Choice == transcript.ChoiceAuto && j.tools.some):
		j.finish = recovery.FinishCalls
	case calls == 0 && f == recovery.FinishCalls:
		j.finish = recovery.FinishStop
	default:
		return
	}
	if !j.leaked {
		j.mended("", ruleFinish)
	}
}

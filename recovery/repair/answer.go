package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// compressionMarkPattern matches the beginning of compressed content, also inside a JSON string.
var compressionMarkPattern = recovery.NewPattern(`\{\s*\\*"_compressed\\*"\s*:\s*true`)

// compressionMark returns a flaw if the answer contains the gateway's marks of compressed
// content. It ignores them if the request contains the word: then they are the client's subject.
func compressionMark(req *transcript.Body, d recovery.Draft) *recovery.Flaw {
	const word = "_compressed"
	imitates := func(s string) bool {
		return strings.Contains(s, word) && compressionMarkPattern.MatchString(s) && !bytes.Contains(req.Raw(), []byte(word))
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

// unpackParallel unpacks multi_tool_use.parallel, in which some models wrap parallel calls.
func (j *job) unpackParallel(list []recovery.DraftCall) (out []recovery.DraftCall, found bool) {
	wrapper := func(c recovery.DraftCall) bool {
		if j.tools.byName(c.Name) != nil {
			return false
		}
		name := stripName(c.Name)
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
			if short := stripName(call.Name); j.tools.byName(short) != nil {
				call.Name = short
			}
			out = append(out, call)
		}
		found = true
	}
	if found {
		j.addRepairs("", ruleParallel)
	}
	return out, found
}

// fillIDs gives each call without an id, or with the id of an earlier call, a new one.
// The new id depends only on the answer.
func (j *job) fillIDs(list []recovery.DraftCall) []recovery.DraftCall {
	if len(list) == 1 && strings.TrimSpace(list[0].ID) != "" {
		return list
	}
	taken := make(map[string]bool, len(list)) // false: the id belongs to a call that comes later
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
	if !j.fromText {
		j.addRepairs("", ruleIDs)
	}
	return out
}

// missingCall returns a flaw if a required call is missing.
func (j *job) missingCall() *recovery.Flaw {
	if j.draft.Finish == recovery.FinishLength || j.draft.Finish == recovery.FinishFilter || !j.tools.some {
		return nil
	}
	flaw := func(problem string) *recovery.Flaw {
		return &recovery.Flaw{Kind: recovery.FlawMissing, Quote: j.draft.Text, Problem: problem}
	}
	switch c := j.tools.choice; {
	case c.Choice == transcript.ChoiceNamed:
		f := flaw("a call of " + strconv.Quote(trajectory.Shorten(c.Name, 100)) + " is required, and the answer has none")
		if j.tools.byName(c.Name) != nil {
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

// maxProbeTokens is the output limit up to which a request counts as a probe, whose
// client wants to know whether the model answers, not what.
const maxProbeTokens = 256

// probes reports whether the client's output limit is that of a probe.
func probes(req *transcript.Body) bool {
	_, limit, ok := req.OutputLimit()
	return ok && limit <= maxProbeTokens
}

// reasoningOnly returns a flaw if the answer has reasoning but neither text nor a call.
func (j *job) reasoningOnly() *recovery.Flaw {
	d := &j.draft
	if !d.Unsaid || d.Shown > 0 || d.Finish == recovery.FinishFilter || d.Finish == recovery.FinishNone {
		return nil
	}
	if probes(j.req) {
		return nil
	}
	f := &recovery.Flaw{Kind: recovery.FlawUnsaid, Limited: d.Finish == recovery.FinishLength, Problem: "it was reasoning only, with neither text nor a tool call"}
	if f.Limited {
		f.Problem = "the output limit was reached before the answer began; think briefly, then answer"
	}
	return f
}

// wrongTool returns a flaw if the request requires a certain tool and the answer calls only others.
func (j *job) wrongTool(calls []recovery.DraftCall) *recovery.Flaw {
	want := j.tools.choice.Name
	if j.tools.choice.Choice != transcript.ChoiceNamed || j.tools.byName(want) == nil ||
		slices.ContainsFunc(calls, func(c recovery.DraftCall) bool { return c.Name == want }) {
		return nil
	}
	return &recovery.Flaw{Kind: recovery.FlawMissing, Tool: want, Quote: calls[0].Name + "(" + calls[0].Arguments + ")",
		Problem: "a call of " + strconv.Quote(trajectory.Shorten(want, 100)) + " is required, and the answer calls another tool"}
}

// mendFinish makes the finish reason agree with the content. "stop" stays if tool_choice
// forces a call: OpenAI reports it for a named tool.
func (j *job) mendFinish(calls int) {
	switch f := j.draft.Finish; {
	case calls > 0 && f == recovery.FinishStop && (j.fromText || j.tools.choice.Choice == transcript.ChoiceAuto && j.tools.some):
		j.finish = recovery.FinishCalls
	case calls == 0 && f == recovery.FinishCalls:
		j.finish = recovery.FinishStop
	default:
		return
	}
	if !j.fromText {
		j.addRepairs("", ruleFinish)
	}
}

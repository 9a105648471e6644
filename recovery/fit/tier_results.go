package fit

import (
	"path"
	"slices"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// proposal is an edit that a tier would make. Tiers propose from the oldest
// message to the newest; what an edit saves is found out by the planner.
type proposal struct {
	at     int // the message
	recipe recipe
}

// tier is one way to make a history smaller. It only looks.
type tier struct {
	name    string
	propose func(v *view, p *protection) []proposal
}

// The names of the tiers, as events and reports have them.
const (
	TierReread    = "reread"
	TierOvertaken = "overtaken"
	TierResults   = "results"
	TierArguments = "arguments"
	TierLong      = "long"
	TierSummary   = "summary"
	TierDigest    = "digest"
	TierOutput    = "output" // no edit of the history: the limit of the answer was lowered
)

// tiers are the tiers that need nobody's help, in order.
func tiers(cfg *Config, budget int) []tier {
	return []tier{
		{TierReread, reread},
		{TierOvertaken, overtaken},
		{TierResults, func(v *view, p *protection) []proposal { return longResults(v, p, cfg.ThresholdChars) }},
		{TierArguments, func(v *view, p *protection) []proposal { return longArguments(v, p, cfg.ThresholdArgs) }},
		{TierLong, func(v *view, p *protection) []proposal { return longMessages(v, p, budget) }},
	}
}

// The thresholds of the tight tiers, in characters, and what they keep.
const (
	tightResult = 400
	tightArgs   = 300
	tightAnswer = 600
)

// tight are the same tiers with small thresholds, for when nobody can write a
// summary: better little of each old message than an error.
func tight() []tier {
	return []tier{
		{TierResults, func(v *view, p *protection) []proposal { return longResults(v, p, tightResult) }},
		{TierArguments, func(v *view, p *protection) []proposal { return longArguments(v, p, tightArgs) }},
		{TierLong, func(v *view, p *protection) (out []proposal) {
			for i := range v.items {
				if it := &v.items[i]; it.Role == transcript.RoleAssistant && p.of[i] == 0 && len(it.text) > tightAnswer {
					out = append(out, proposal{i, recipe{Op: opLong, A: tightAnswer / 2, B: tightAnswer / 4}})
				}
			}
			return out
		}},
	}
}

// reread proposes to take out the results of calls that were made again: with
// the same result, or with a newer one where the tool looks at something.
func reread(v *view, p *protection) (out []proposal) {
	last := map[[2]string]*item{}
	for i := len(v.items) - 1; i >= 0; i-- {
		it := &v.items[i]
		if !it.result || it.caller < 0 || it.call.text == "" && it.call.kind == kindOther || compressed(it.text) {
			continue
		}
		id := [2]string{it.call.Name, it.call.text}
		newer, again := last[id]
		if !again {
			last[id] = it
			continue
		}
		if p.of[i] != 0 {
			continue
		}
		switch {
		case newer.text == it.text:
			out = append(out, proposal{i, recipe{Op: opRepeated}})
		case it.call.kind != kindOther && it.call.kind != kindEdit && it.call.kind != kindWrite && (!newer.failed() || it.failed()):
			out = append(out, proposal{i, recipe{Op: opOutdated}})
		}
	}
	slices.Reverse(out)
	return out
}

// overtaken proposes to take out what was read of files that were changed later.
func overtaken(v *view, p *protection) (out []proposal) {
	changed := map[string][]string{} // by the last part of the path
	for i := len(v.items) - 1; i >= 0; i-- {
		it := &v.items[i]
		if !it.result || it.caller < 0 {
			continue
		}
		switch it.call.kind {
		case kindEdit, kindWrite:
			for _, file := range it.call.paths {
				name := path.Base(file)
				if have := changed[name]; len(have) < maxSameName && !slices.Contains(have, file) && !it.failed() {
					changed[name] = append(have, file)
				}
			}
		case kindRead:
			if p.of[i] == 0 && len(it.call.paths) == 1 && anySame(changed[path.Base(it.call.paths[0])], it.call.paths[0]) {
				out = append(out, proposal{i, recipe{Op: opOvertaken}})
			}
		}
	}
	slices.Reverse(out)
	return out
}

// maxSameName bounds how many files of one name are told apart.
const maxSameName = 256

func anySame(list []string, file string) bool {
	return slices.ContainsFunc(list, func(c string) bool { return samePath(c, file) })
}

// What is kept of a result that is shortened: most of what matters in the
// output of tools stands at its ends.
const (
	keepHead = 600
	keepTail = 500
)

// longResults proposes to shorten results above limit characters, and those with images.
func longResults(v *view, p *protection, limit int) (out []proposal) {
	for i := range v.items {
		it := &v.items[i]
		if p.of[i] != 0 || !it.result {
			continue
		}
		if len(it.text) > limit && utf8.RuneCountInString(it.text) > limit || it.shape.Media > 0 {
			head, tail := min(keepHead, limit/3), min(keepTail, limit/4)
			out = append(out, proposal{i, recipe{Op: opShorten, A: uint32(head), B: uint32(tail)}})
		}
	}
	return out
}

// longMessages proposes to shorten what alone takes a large share of the
// budget: old answers above 5 %, and above a quarter also results among the
// recent ones. A person's words are not among them.
func longMessages(v *view, p *protection, budget int) (out []proposal) {
	for i := range v.items {
		it := &v.items[i]
		share := 0
		switch {
		case it.result && p.of[i]&^protectRecent == 0:
			share = budget / 4
		case it.Role == transcript.RoleAssistant && p.of[i] == 0:
			share = budget / 20
		}
		if share == 0 || p.tokens[i] <= share || it.text == "" {
			continue
		}
		// A third of what is allowed, in bytes of four to a token, in steps, so
		// that a slightly other count makes the same edit.
		keep := max(1024, share/3*4/1024*1024)
		out = append(out, proposal{i, recipe{Op: opLong, A: uint32(keep * 2 / 3), B: uint32(keep / 3)}})
	}
	return out
}

package fit

import (
	"path"
	"slices"
)

// proposal is an edit that a tier would make, of a result that says nothing that
// is not said later. Tiers propose from the oldest message to the newest; what an
// edit saves is found out by the planner.
type proposal struct {
	at     int // the message
	recipe recipe
}

// The names of the tiers, as events and reports have them.
const (
	TierMedia     = "attachments"
	TierReread    = "reread"
	TierOvertaken = "overtaken"
	TierResults   = "results"
	TierArguments = "arguments"
	TierLong      = "long"
	TierSummary   = "summary"
	TierDigest    = "digest"
	TierOutput    = "output" // no edit of the history: the limit of the answer was lowered
)

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

package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Outcomes learn what followed failures.
type Outcomes interface {
	// Open reports whether something still waits to be told of a session. It is asked for every
	// request with results.
	Open(session string) bool
	// After is told what followed a failure; the same may be told again. It never blocks.
	After(recovery.After)
}

// maxAfter bounds how many failures of one turn are told of.
const maxAfter = 4

// tellAfter tells what followed the last turns: their failures, or, where something is
// still awaited, turns in which nothing failed, as agents go round in circles in these, too.
func (s *Stage) tellAfter(x *recovery.Exchange, h *history) {
	last := len(h.turns) - 1
	open := s.Outcomes.Open(x.Session)
	for k := last; k >= 0 && k >= last-2; k-- {
		told := 0
		if open && h.load(k).failure() == nil {
			if a, ok := h.afterTurn(k); ok {
				a.Session, a.At = x.Session, h.turns[k].lastIndex()
				s.Outcomes.After(a)
			}
		}
		for i := range h.load(k).steps {
			st := &h.turns[k].steps[i]
			f := st.judge()
			if !f.Failed || told == maxAfter {
				continue
			}
			if a, ok := h.after(k, st); ok {
				a.Session, a.Fingerprint, a.At = x.Session, f.Fingerprint, f.Index
				s.Outcomes.After(a)
				told++
			}
		}
	}
}

// after is what the turns after turn k brought for its step that failed; false where
// nothing followed yet.
func (h *history) after(k int, failed *step) (a recovery.After, ok bool) {
	for j := k; j < len(h.turns); j++ {
		t := h.load(j)
		if j > k && len(t.steps) > 0 {
			a.Calls++
			for i := range t.steps {
				s := &t.steps[i]
				f := s.judge()
				switch {
				case f.Failed:
					a.Same = a.Same || f.Fingerprint == failed.verdict.Fingerprint
				case attains(&failed.made, &s.made):
					a.Target = true
				default:
					a.Some, a.Again = true, a.Again || runsAgain(&failed.made, &s.made)
				}
			}
		}
		if a.Target || a.Same {
			break
		}
		if h.spoken(j) {
			a.Stopped = len(t.steps) == 0
			a.Person = !a.Stopped
			break
		}
	}
	return a, a.Calls > 0 || a.Person || a.Stopped
}

// afterTurn is what the turns after turn k brought, in which nothing failed; false where
// nothing followed yet.
func (h *history) afterTurn(k int) (a recovery.After, ok bool) {
	if len(h.turns[k].steps) == 0 {
		return a, false
	}
	last := len(h.turns) - 1
	end := k
	for end < last && !h.spoken(end) {
		end++
	}
	if end == last { // nobody spoke between
		h.follow(func(j int, gain float64) {
			if j > k && !a.Target && !a.Same {
				a.Calls++
				a.Target, a.Same = gain == 1, gain == 0
			}
		})
	}
	if !a.Target && !a.Same && h.spoken(end) {
		a.Stopped = len(h.load(end).steps) == 0
		a.Person = !a.Stopped
	}
	return a, a.Calls > 0 || a.Person || a.Stopped
}

// lastIndex is the place of the last result of a turn that is loaded.
func (t *turn) lastIndex() (at int) {
	for i := range t.steps {
		at = max(at, t.steps[i].Index)
	}
	return at
}

// attains reports whether a call that succeeded did what a call that failed was for:
// one of what that worked on, or the same program or tool where it names nothing. What
// only looks does not do what was to be done, and finding a file is not reading it.
func attains(failed, made *trajectory.Call) bool {
	if made.Reads() && !failed.Reads() || locates(made) && !locates(failed) {
		return false
	}
	wants, of := aims(failed)
	has, by := aims(made)
	if len(wants) > 0 {
		return slices.ContainsFunc(wants, func(w string) bool { return slices.Contains(has, w) })
	}
	return slices.ContainsFunc(of, func(p string) bool { return slices.Contains(by, p) })
}

// runsAgain reports whether a call is of the program or tool that another one was of.
func runsAgain(failed, made *trajectory.Call) bool {
	_, of := aims(failed)
	_, by := aims(made)
	return slices.ContainsFunc(of, func(p string) bool { return slices.Contains(by, p) })
}

// maxAims bounds what is read of one call.
const maxAims = 32

// aims are what a call works on, without folders, and by what.
func aims(c *trajectory.Call) (on, by []string) {
	add := func(w string) {
		if w = path.Base(strings.ReplaceAll(strings.TrimSpace(w), `\`, "/")); len(w) > 1 && w != ".." && len(on) < maxAims {
			on = append(on, w)
		}
	}
	if c.Line() != "" {
		for _, v := range trajectory.Invocations(c.Line()) {
			if v.Prepares() {
				continue
			}
			by = append(by, v.Runs())
			for _, w := range v.Operands() {
				add(w)
			}
		}
		return on, by
	}
	for _, f := range c.Files() {
		add(f.Path)
	}
	if text := strings.TrimSpace(c.Arguments); len(on) == 0 && len(text) <= maxAimed && strings.HasPrefix(text, "{") && gjson.Valid(text) {
		gjson.Parse(text).ForEach(func(_, v gjson.Result) bool {
			if v.Type == gjson.String && len(v.Str) <= 200 {
				add(v.Str)
			}
			return len(on) < maxAims
		})
	}
	return on, []string{c.Tool}
}

// maxAimed bounds the arguments that are searched for what a call works on, in bytes.
const maxAimed = 16 << 10

var (
	// locators are programs that find files, and locating the words with which names of such tools begin.
	locators = []string{"find", "fd", "ls", "locate", "which", "whereis", "type", "tree", "stat", "file", "test"}
	locating = []string{"find", "glob", "list", "ls", "search", "grep", "tree", "locate"}
)

// locates reports whether a call tells where something is, and not what is in it.
func locates(c *trajectory.Call) bool {
	if c.Line() == "" {
		words := trajectory.NameWords(c.Tool)
		return len(words) > 0 && slices.Contains(locating, words[0])
	}
	_, by := aims(c)
	return len(by) > 0 && !slices.ContainsFunc(by, func(p string) bool { return !slices.Contains(locators, p) })
}

package inspect

import (
	"slices"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// Rules recognises failures in tool results, and repetition. It is immutable and safe for concurrent use; it
// loads and compiles its rules when the first result comes.
type Rules struct {
	get func() (*lists, error)
}

// NewRules returns Rules with an operator's own rules, followed by the rules from load. Create it once and share
// it. If the rules cannot be loaded, which Check reports, it recognises failures only by structure.
func NewRules(load func() (rule.Set, error), own ...rule.Rule) *Rules {
	return &Rules{get: sync.OnceValues(func() (*lists, error) {
		set, err := load()
		var list *rule.List
		if err == nil {
			set = rule.Join(rule.Set{Rules: own}, set)
			list, err = rule.Compile(set, vocabulary())
		}
		if err == nil {
			err = list.Index()
		}
		if err != nil {
			list, set = new(rule.List), rule.Set{}
			_ = list.Index()
		}
		return newLists(list, set), err
	})}
}

// Warm loads and compiles the rules now, so that the first result does not wait for it.
func (r *Rules) Warm() { _, _ = r.get() }

// class is what a rule concludes about a line or a text. A rule that recognises one of the ten categories of failures
// concludes the category itself, not a class. The rules' files have examples next to the patterns.
type class uint8

const (
	noCategory   class = iota // a failure of none of the ten categories
	otherFailure              // the same, but only where errors usually are
	refusal                   // a person's or a policy's refusal
	ended                     // the call hit a time limit
	editRefused               // an editor did not apply an edit
	editOrder                 // the same, because another call must come first: the file was not read yet
	editSyntax                // the same, because the new text has a syntax error
	testsFailed               // the summary of a test runner
	testsPassed
	testsNotRun
	noError       // never an error of the call
	quoted        // no evidence unless the call is known to have failed
	genuine       // not quoted, although it looks like it
	wentOn        // the program says that it continued
	logged        // an entry of a log
	source        // source code, in the frame that tools show it in
	carets        // ^^^^ below source code
	meaning       // only the system's words for an error: 13 Permission denied
	reported      // a field of an error that a program prints as data: code: ENOENT
	opinion       // an error whose category is debatable
	follows       // explains the error above: stack frames, fields, hints to the help
	hint          // what a reading tool adds to its error: Did you mean …?
	callError     // begins as errors about a call's arguments do
	readerError   // begins as a reading tool's own errors do
	numbered      // a line of a file or a search, with its number
	exitCode      // an agent's line with the exit code
	wrapper       // another line that an agent adds to an output
	outputHead    // what an agent puts before an output on the same line: Observation: …
	errorSentence // the same before an error, which it is not a part of
	errorHead     // the beginning of an agent framework's error
	exceptionText // the message of an exception, without its name
	goesOn        // something is still running: status: pending
	settled       // something has ended: Exited (1)
	barren        // there is nothing: No more results
	complaint     // reads like a failure: 2 errors
	toGoOn        // only a prompt to go on: Please continue.
	prompted      // may be one, if it is repeated: You must use a tool.
	askedTimes    // asks to repeat something a number of times
	askedUntil    // asks to repeat something until it ends in a certain way
	shortFailure  // what the whole of a short result says

	// Groups of classes; the first matching rule of a group decides.
	categories // of failures, and noCategory
	forms      // the rules of categories that are not guesses
	quotations
	summaries
	edits
	allGroups
)

// classNames are the names of the classes in rule files.
var classNames = [categories]string{"none", "failure", "refusal", "ended", "edit_refused", "edit_order", "edit_syntax", "tests_failed", "tests_passed",
	"tests_not_run", "no_error", "quoted", "genuine", "went_on", "log", "source", "carets", "meaning", "reported", "opinion", "follows",
	"hint", "call_error", "reader_error", "numbered", "exit_code", "wrapper", "output_head", "error_sentence", "error_head", "exception_text", "goes_on", "settled", "barren",
	"complaint", "go_on", "prompted", "asked_times", "asked_until", "brief_failure"}

// groupOf returns the group in which a rule competes.
func groupOf(r *rule.Rule) class {
	c := class(max(0, slices.Index(classNames[:], r.Class)))
	switch c {
	case noCategory:
		return categories
	case quoted, genuine, wentOn:
		return quotations
	case testsFailed, testsPassed, testsNotRun:
		return summaries
	case editRefused, editOrder, editSyntax:
		return edits
	}
	return c
}

// The explicit levels of a rule's certainty. A certain failure rule matches a form that only a failing program
// prints; it counts even if a pipe hides the exit code. A guess matches a wording; it counts only if the call is
// known to have failed.
const (
	certainly = "certain"
	guess     = "guess"
)

// lists holds the compiled rules, masks by class, word lists, and the cache of summaries that were made with
// these rules.
type lists struct {
	*rule.List
	of     [allGroups]rule.Mask
	words  map[string]map[string]bool
	memory *memory
}

func newLists(list *rule.List, set rule.Set) *lists {
	l := &lists{List: list, words: map[string]map[string]bool{}, memory: newMemory()}
	for c := range allGroups {
		l.of[c] = list.Mask(func(r *rule.Rule) bool {
			return c < categories && r.Class == classNames[c] || c == groupOf(r) || c == forms && groupOf(r) == categories && r.Sure != guess
		})
	}
	for name, words := range set.Words {
		l.words[name] = make(map[string]bool, len(words))
		for _, w := range words {
			l.words[name][w] = true
		}
	}
	return l
}

// vocabulary returns the conclusions and the facts that rules may use.
func vocabulary() rule.Vocabulary {
	v := rule.Vocabulary{Classes: slices.Clone(classNames[:]), TextOnly: true}
	for _, f := range facts {
		v.Facts = append(v.Facts, f.name)
	}
	for _, c := range recovery.Categories() {
		v.Classes, v.Facts = append(v.Classes, string(c)), append(v.Facts, string(c))
	}
	return v
}

// facts are conditions for a rule's when and unless that no wording can express, about the line at an index; -1
// is a text outside of the result. A category is also a fact: that the line would otherwise be a failure of this
// category.
var facts = [...]struct {
	name  string
	holds func(v *view, at int) bool
}{
	{"shell", func(v *view, _ int) bool { return v.kind == trajectory.Shell }},
	{"code", func(v *view, _ int) bool { return v.kind == trajectory.Code }},
	{"editor", func(v *view, _ int) bool { return v.kind == trajectory.Editor }},
	{"reader", func(v *view, _ int) bool { return v.kind == trajectory.Reader }},
	{"other", func(v *view, _ int) bool { return v.kind == trajectory.Other }},
	{"failed", func(v *view, _ int) bool { return v.outcome == failed }},
	{"succeeded", func(v *view, _ int) bool { return v.outcome == succeeded }},
	{"outcome-unknown", func(v *view, _ int) bool { return v.outcome == unknown }},
	{"command-unknown", func(v *view, _ int) bool { return v.call.Line() == "" }},
	{"exit-127", func(v *view, _ int) bool { return v.hasExit && v.exit == 127 }},
	{"first-line", func(_ *view, at int) bool { return at == 0 }},
	{"last-line", func(v *view, at int) bool { return at >= 0 && (at == v.ends-1 || v.ends == 0 && at == len(v.lines)-1) }},
	{"own-name", func(v *view, at int) bool { return at >= 0 && v.hasProgramPrefix(v.lines[at].text) }},
	{"only-line", func(v *view, at int) bool { return at == 0 && len(v.lines) == 1 }},
}

// line is a line of a result, with the rules that may match it.
type line struct {
	text    string
	hits    rule.Hits
	scanned bool
}

// maxRuleLine limits the part of a line that rules see, in bytes.
const maxRuleLine = 600

func short(text string) string { return text[:min(len(text), maxRuleLine)] }

// near is how many previous lines a rule's condition about neighbours covers.
const near = 12

// hitsOf returns the rules' hits in a line, and scans the line only at its first call.
func (v *view) hitsOf(l *line) rule.Hits {
	if !l.scanned {
		from := len(*v.hits)
		*v.hits = v.rules.Scan(*v.hits, short(l.text))
		l.hits, l.scanned = (*v.hits)[from:len(*v.hits):len(*v.hits)], true
	}
	return l.hits
}

// first returns the first rule of a group that matches line i, or nil.
func (v *view) first(i int, c class) *rule.Rule { return v.firstOf(&v.lines[i], i, c, "") }

// is reports whether a rule of a class matches line i.
func (v *view) is(i int, c class) bool { return v.first(i, c) != nil }

// says reports whether a rule of a class matches a text that is no line of the result.
func (l *lists) says(text string, c class) bool {
	hits := l.Scan(nil, text)
	return len(hits) > 0 && l.FirstOf(l.of[c], hits, &rule.Subject{Raw: text}) >= 0
}

// firstOf is first for a line at an index, or at -1 for a text outside of the result. about is the category of
// which the line would otherwise be a failure.
func (v *view) firstOf(l *line, at int, c class, about string) *rule.Rule {
	hits := v.hitsOf(l)
	if len(hits) == 0 {
		return nil
	}
	s := v.subject(l, at, about)
	if n := v.rules.FirstOf(v.rules.of[c], hits, &s); n >= 0 {
		return v.rules.Rule(n)
	}
	return nil
}

func (v *view) subject(l *line, at int, about string) rule.Subject {
	return rule.Subject{Raw: short(l.text), Surroundings: v, At: at, Fact: about}
}

// Holds reports whether a fact is true of the line at an index. Rules call it.
func (v *view) Holds(fact string, at int) bool {
	for _, f := range facts {
		if f.name == fact {
			return f.holds(v, at)
		}
	}
	return false
}

// Near reports whether one of the previous lines matches. Rules call it.
func (v *view) Near(at int, matches func(text string) bool) bool {
	return at >= 0 && slices.ContainsFunc(v.lines[max(0, at-near):at], func(l line) bool { return matches(short(l.text)) })
}

// match returns the failure rule that decides a text, or nil.
func (v *view) match(text string) *rule.Rule { return v.failure(&line{text: text}, -1, false) }

// failure returns the failure rule that decides a line, or nil. It tries guesses only if asked, and only after all
// other rules.
func (v *view) failure(l *line, at int, guesses bool) *rule.Rule {
	if r := v.firstOf(l, at, forms, ""); r != nil || !guesses {
		return r
	}
	return v.firstOf(l, at, categories, "")
}

// Rules returns the rules in the order in which they are tried, or the error that prevents their use.
func (r *Rules) Rules() (*rule.List, error) {
	l, err := r.get()
	return l.List, err
}

// Check tries the examples of the first n rules, or of all if n is negative: see [rule.List.Check]. An example is shell
// output of a failed call: its rule must decide one of the lines, and no line of a lookalike.
func (r *Rules) Check(n int) error {
	l, err := r.get()
	if err != nil {
		return err
	}
	return l.Check(n, l.decide)
}

// decide returns the names of the rules in the rule's group that decide the lines of an example. It sets the
// facts that the rule requires, as far as possible.
func (l *lists) decide(own *rule.Rule, text string) (names []string) {
	v := view{rules: l, kind: trajectory.Shell, call: trajectory.CommandCall("make"), stderr: -1, outcome: failed, text: text, printed: len(text), hits: new(rule.Hits)}
	about := ""
	for _, f := range own.When {
		switch f {
		case "reader":
			v.kind = trajectory.Reader
		case "editor":
			v.kind = trajectory.Editor
		case "other":
			v.kind = trajectory.Other
		case "succeeded":
			v.outcome = succeeded
		case "outcome-unknown":
			v.outcome = unknown
		case "exit-127":
			v.hasExit, v.exit = true, 127
		default:
			about = f
		}
	}
	v.lines = textLines(nil, text)
	for i := range v.lines {
		r := v.firstOf(&v.lines[i], i, groupOf(own), about)
		if groupOf(own) == categories {
			r = v.failure(&v.lines[i], i, true)
		}
		if r != nil {
			names = append(names, r.Name)
		}
	}
	return names
}

// submatch returns what the first matching rule of a class finds in a text, with its groups, or nil.
func (l *lists) submatch(text string, c class) []string {
	hits := l.Scan(nil, text)
	if len(hits) == 0 {
		return nil
	}
	return l.Submatch(l.of[c], hits, &rule.Subject{Raw: text})
}

package annotate

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// parsesJSON matches an HTTP client with a pipe into a JSON parser, notJSON the parser's error about input that
// is not JSON.
var (
	parsesJSON = recovery.NewPattern(`(?s)\b(curl|wget|http) [^|]*?\|.*(?:json|jq)\b`)
	notJSON    = recovery.NewPattern(`Expecting value: line 1 column 1 \(char 0\)|parse error: Invalid (?:numeric literal|literal) at line 1\b|Unexpected token .{1,20} in JSON at position 0|Unexpected end of JSON input`)
)

// curlFailed matches curl's own error, which says why there is no answer.
var curlFailed = recovery.NewPattern(`(?m)^curl: \(\d+\)`)

// noJSON finds a server's answer that is not JSON.
func (s *failureContext) noJSON() fact {
	if !parsesJSON.MatchString(s.failingCall.Line()) || s.firstMatch(notJSON, "expecting value", "parse error", "json") == "" || curlFailed.MatchString(s.content) {
		return fact{}
	}
	for _, v := range s.programs {
		if v.Program == "curl" && !secret.MatchString(v.Text) {
			line := "curl -i" + strings.TrimPrefix(strings.TrimPrefix(v.Text, "curl"), " -s")
			return s.commanded("The server's answer is empty or no JSON. Without the pipe it shows, with its status", line, quoted(line))
		}
	}
	return fact{say: "The server's answer is empty or no JSON: look at it without the pipe first."}
}

var managedWords = recovery.NewPattern(`externally[- ]managed[- ]environment`)

// managed finds an installation that the system's own Python refuses.
func (s *failureContext) managed() fact {
	if s.firstMatch(managedWords, "externally") == "" || s.barred&recovery.Installs != 0 {
		return fact{}
	}
	return fact{say: "The system's Python takes no packages; a virtual environment does.", call: "Make a virtual environment (`python3 -m venv .venv`) and use its `pip`."}
}

var heldBy = recovery.NewPattern(`(?i)(?:lock|locked)\b.{0,80}\bheld by process (\d{1,9})`)

// locked finds a lock that another process holds.
func (s *failureContext) locked() fact {
	id := s.firstMatch(heldBy, "held by process")
	if id == "" {
		return fact{}
	}
	wait := "tail --pid=" + id + " -f /dev/null"
	return s.commanded("Process "+id+" holds the lock and lets go of it when it is done. Wait for that, then make the same call again", wait, quoted(wait)+" waits")
}

// noTable and noColumn match a database's errors about unknown names, source a table in a query, aliased the other
// name behind it, clause the beginnings of a query's parts.
var (
	noTable  = recovery.NewPattern(`(?i)\bTable '([\w.]+)' doesn't exist|no such table: ([\w.]+)|relation "([\w.]+)" does not exist|Invalid object name '([\w.]+)'`)
	noColumn = recovery.NewPattern(`(?i)Unknown column '([\w.]+)'|no such column: ([\w.]+)|column "?([\w.]+)"? does not exist|Invalid column name '([\w.]+)'`)
	source   = recovery.NewPattern(`(?i)\b(?:from|join|into|update)\s+[\x60"\[]?([\w.]+)`)
	aliased  = recovery.NewPattern(`(?i)^[\x60"\]]?\s+(?:as\s+)?(\w+)`)
	clause   = recovery.NewPattern(`(?i)\b(?:select|from|join|on|where|having|by|set|into|update)\b`)
	// madeHere matches names that a query makes itself, goal what it inserts into, fleeting a temporary table.
	madeHere = recovery.NewPattern(`(?i)\b(\w+)(?:\s*\([\w\s,]*\))?\s+as\s+(?:materialized\s+)?\(|\bas\s+["\x60]?(\w+)`)
	goal     = recovery.NewPattern(`(?i)\binsert\s+into\s+[\w."]+\s*(?:\([^)]*\))?`)
	fleeting = recovery.NewPattern(`(?i)\bcreate\s+(?:(?:global|local)\s+)?temp(?:orary)?\s+table\s+(?:if\s+not\s+exists\s+)?["\x60]?(\w+)`)
)

// makes reports whether a text makes something of that name, as the pattern says.
func makes(how *recovery.Pattern, text, name string) bool {
	return slices.ContainsFunc(how.FindAllStringSubmatch(text, maxSources), func(m []string) bool { return strings.EqualFold(cmp.Or(m[1:]...), name) })
}

// tableOf returns the table in which a query looks for a column: that of its qualifier, or the next one after a column
// in a list behind SELECT, or else the last one before it; "" if the qualifier stands for none.
func tableOf(query, column string) string {
	qualifier, _, qualified := strings.Cut(column, ".")
	at := strings.Index(query, column)
	for at > 0 && isWord(query[at-1]) {
		next := strings.Index(query[at+1:], column)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	clauses := clause.FindAllString(query[:max(at, 0)], -1)
	listed := len(clauses) > 0 && strings.EqualFold(clauses[len(clauses)-1], "select")
	table := ""
	for _, m := range source.FindAllStringSubmatchIndex(query, maxSources) {
		found := query[m[2]:m[3]]
		switch {
		case qualified:
			alias := aliased.FindStringSubmatch(query[m[3]:])
			if strings.EqualFold(found, qualifier) || alias != nil && strings.EqualFold(alias[1], qualifier) {
				return found
			}
		case listed && m[0] > at:
			return found
		case table == "" || m[0] < at:
			table = found
		}
	}
	return table
}

// maxSources limits the tables of a query that are compared.
const maxSources = 32

// inDatabase describes how to list the tables or columns that exist. For a missing table, the call itself must
// contain the query: an agent that runs a program cannot send one. What a query makes itself is in no list.
func (s *failureContext) inDatabase() fact {
	lite, query := strings.Contains(s.content, "no such "), cmp.Or(text(s.args, "query", "sql", "statement"), s.f.Arguments)
	standard := !lite && strings.Contains(s.content, "does not exist")
	missing, column := s.firstMatch(noTable, "table", "relation", "object name"), s.firstMatch(noColumn, "column")
	table := missing
	if missing == "" && column != "" {
		if standard { // no message about a column of the goal
			query = goal.ReplaceAllString(query, "")
		}
		table = tableOf(query, column)
	}
	dot := strings.LastIndexByte(table, '.')
	schema, name := table[:max(0, dot)], table[dot+1:]
	if name == "" || makes(madeHere, query, name) || makes(madeHere, query, column[strings.LastIndexByte(column, '.')+1:]) {
		return fact{}
	}
	line, what := "DESCRIBE "+table, "SHOW TABLES"
	switch {
	case lite:
		line, what = "PRAGMA table_info("+table+")", "SELECT name FROM sqlite_master WHERE type = 'table'"
	case standard:
		line = "SELECT column_name FROM information_schema.columns WHERE table_name = '" + name + "'"
		what = "SELECT table_name FROM information_schema.tables WHERE table_schema = '" + cmp.Or(schema, "public") + "'"
	}
	if missing == "" {
		return fact{say: "The columns of " + quoted(table) + " need not be guessed.", call: "Send " + quoted(line) + " first, which lists them."}
	}
	for _, c := range s.earlierCalls() {
		if makes(fleeting, cmp.Or(text(object(c.Arguments), "query", "sql", "statement"), c.Arguments), name) {
			return fact{say: "An earlier call made " + quoted(name) + " as a temporary table, which ends with its connection.", call: "Create it and use it in one call."}
		}
	}
	if !trajectory.HasWord(s.f.Arguments, name) || s.runs() && strings.Contains(s.content, "Traceback (most recent") {
		return fact{}
	}
	return fact{say: "The database has no table " + quoted(table) + ".", call: "Send " + quoted(what) + " first, which lists those that it has."}
}

// Waits as rate limits state them, in the words of APIs and of the Retry-After header.
var (
	waitHeader = recovery.NewPattern(`(?i)\bretry[-_ ]after(?:[-_]?seconds)?["']?\s*[:=]?\s*["']?(\d{1,6}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?\b`)
	waitWords  = recovery.NewPattern(`(?i)\b(?:(?:try|retry|again|available|resets?)\b[^.\n\d]{0,40}?\b(?:in|after)|wait(?:ing)?(?: for| at least)?|retrying in)\s+` +
		`(?:about |another )?(\d{1,6}(?:\.\d{1,6})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)\b`)
)

// maxWait limits the wait that a note asks for, in seconds.
const maxWait = 3600

// wait returns how long the rate limit says to wait, in whole seconds; 0 if it does not say, or says more than
// maxWait.
func (s *failureContext) wait() int {
	for _, text := range [...]string{s.f.Line, s.content} {
		for _, re := range [...]*recovery.Pattern{waitHeader, waitWords} {
			m := re.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			n, _ := strconv.ParseFloat(m[1], 64)
			switch u := strings.ToLower(m[2]); {
			case strings.HasPrefix(u, "ms"), strings.HasPrefix(u, "milli"):
				n /= 1000
			case strings.HasPrefix(u, "m"):
				n *= 60
			}
			if secs := int(math.Ceil(n)); secs > 0 && secs <= maxWait {
				return secs
			}
		}
	}
	return 0
}

// limit states how long a rate limit lasts.
func (s *failureContext) limit() fact {
	n := s.wait()
	if n == 0 {
		return fact{}
	}
	f := fact{say: fmt.Sprintf("The limit ends in %d seconds: wait so long, then make the same call once.", n)}
	if n <= 120 {
		f.call = s.run(fmt.Sprintf("sleep %d", n))
	}
	return f
}

// shownLine is a numbered line of a file in a result.
type shownLine struct {
	number int
	text   string
}

var (
	numbered  = recovery.NewPattern(`(?m)^\s{0,8}(\d{1,6})(?:[:|→]|\t| \| ?)(.*)$`)
	editRange = recovery.NewPattern(`^\s*edit (\d{1,6}):(\d{1,6})\s*\n`)
	wouldBe   = recovery.NewPattern(`(?s)would have looked[^\n]*\n(.*?)(?:This is the original|Your changes have NOT|$)`)
	original  = recovery.NewPattern(`(?s)This is the original code before your edit\n(.*?)(?:Your changes have NOT|$)`)
	openFile  = recovery.NewPattern(`\(Open file: ([^\s)]{1,300})\)`)
)

// rangeEdit is a failing edit of a range of lines.
type rangeEdit struct {
	from, to int
	put      []string    // the lines that it inserts
	old      []string    // the lines of the range before, none if the result does not show them
	above    string      // the line before the range
	shown    []shownLine // the file as it would have become
}

// edited parses a failing edit of a line range; it returns nil for other calls.
func (s *failureContext) edited() *rangeEdit {
	line := s.failingCall.Line()
	m := editRange.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	e := &rangeEdit{}
	e.from, _ = strconv.Atoi(m[1])
	e.to, _ = strconv.Atoi(m[2])
	body, _, _ := strings.Cut(line[strings.IndexByte(line, '\n'):], "\nend_of_edit")
	e.put = strings.Split(strings.TrimPrefix(body, "\n"), "\n") // a blank line if it deletes the range
	if w := wouldBe.FindStringSubmatch(s.content); w != nil {
		e.shown = shownLines(w[1])
	}
	if w := original.FindStringSubmatch(s.content); w != nil {
		for _, l := range shownLines(w[1]) {
			switch {
			case l.number == e.from-1:
				e.above = l.text
			case l.number >= e.from && l.number <= e.to:
				e.old = append(e.old, l.text)
			}
		}
	}
	return e
}

// shownLines returns the numbered lines of a text.
func shownLines(text string) (list []shownLine) {
	for _, l := range numbered.FindAllStringSubmatch(text, maxShown) {
		n, _ := strconv.Atoi(l[1])
		list = append(list, shownLine{n, l[2]})
	}
	return list
}

// maxShown limits the lines of a file that are read.
const maxShown = 1000

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// depth returns the indentation of the first and of the least indented line that is not blank; -1 if all are.
func depth(lines []string) (first, least int) {
	first, least = -1, -1
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if first < 0 {
			first, least = indent(l), indent(l)
		}
		least = min(least, indent(l))
	}
	return first, least
}

// doubled reports whether the replacement begins with the line that stands before its range: the range has another
// place than the model thinks.
func (e *rangeEdit) doubled() bool {
	return strings.TrimSpace(e.above) != "" && strings.TrimSpace(e.above) == strings.TrimSpace(e.put[0])
}

// indentation finds an edit that puts about as many lines in the place of lines that were all indented more. A comment
// fills no block, and a line's number is no part of it.
func (s *failureContext) indentation() fact {
	if !strings.Contains(s.content, "IndentationError") {
		return fact{}
	}
	e := s.edited()
	if e == nil || strings.TrimSpace(e.put[0]) == "" || outermost.MatchString(e.put[0]) || noCode.MatchString(e.put[0]) || e.doubled() || len(e.put) > len(e.old)+1 || len(e.old) > len(e.put)+1 {
		return fact{}
	}
	is, _ := depth(e.put)
	want, least := depth(e.old)
	if least <= is {
		return fact{}
	}
	f := fact{say: fmt.Sprintf("Line %d of the replacement is indented by %d; the line that it replaces by %d.", e.from, is, want)}
	if len(e.put) == 1 {
		f.call = fmt.Sprintf("Send the same edit with %d blanks in front of %s.", want, quoted(strings.TrimSpace(e.put[0])))
	} else {
		f.say += " Write the replacement with that indentation."
	}
	return f
}

var (
	undefined = recovery.NewPattern(`F821 undefined name '(\w{1,80})'`)
	outermost = recovery.NewPattern(`(?m)^(?:def |class |@|if __name__|import |from )`)
	noCode    = recovery.NewPattern(`^\s*(?:#|\d+:)`)
	header    = recovery.NewPattern(`(?m)^(?:def|class) (\w{1,80})`)
)

// minWhole is how many more lines than its range an edit must insert to count as one that inserts a whole
// function or class.
const minWhole = 6

// leftBehind finds an edit that replaces only a part by a whole function or class: the rest of the old code
// remains behind it and causes the error.
func (s *failureContext) leftBehind() fact {
	e := s.edited()
	if e == nil || e.doubled() {
		return fact{}
	}
	name, whole := undefined.FindStringSubmatch(s.content), strings.Join(e.put, "\n")
	if first, _ := depth(e.put); first != 0 || !outermost.MatchString(whole) || strings.HasSuffix(strings.TrimSpace(whole), ":") {
		return fact{}
	}
	if len(e.old) > 0 && !e.sameBlocks(whole) {
		return fact{} // another file, or too long a range: it takes the head of the next block with it
	}
	if name == nil && (!strings.Contains(s.content, "IndentationError") || len(e.old) == 0) || name != nil && (trajectory.HasWord(whole, name[1]) || len(e.put) < e.to-e.from+minWhole) {
		return fact{}
	}
	for _, l := range e.shown {
		if l.number < e.from+len(e.put) || strings.TrimSpace(l.text) == "" {
			continue
		}
		if name != nil && trajectory.HasWord(l.text, name[1]) || name == nil && indent(l.text) > 0 {
			return fact{say: fmt.Sprintf("The range %d:%d is too short: line %d (%s) and what follows belong to what stood there before, and stay behind the new text. Take them into the range.",
				e.from, e.to, l.number, quoted(strings.TrimSpace(l.text)))}
		}
		if name == nil {
			return fact{}
		}
	}
	return fact{}
}

// sameBlocks reports whether the replacement has all functions and classes that begin in the range, and one of those
// that it replaces.
func (e *rangeEdit) sameBlocks(whole string) bool {
	names := func(text string) (list []string) {
		for _, m := range header.FindAllStringSubmatch(text, maxShown) {
			list = append(list, m[1])
		}
		return list
	}
	put, old := names(whole), names(strings.Join(e.old, "\n"))
	return len(old) > 0 && !slices.ContainsFunc(old, func(name string) bool { return !slices.Contains(put, name) })
}

// leftOver finds an edit whose range leaves the old last line behind the new one.
func (s *failureContext) leftOver() fact {
	e := s.edited()
	if e == nil {
		return fact{}
	}
	put := e.put
	for len(put) > 0 && strings.TrimSpace(put[len(put)-1]) == "" {
		put = put[:len(put)-1]
	}
	first, _ := depth(put)
	if before, _ := depth(e.old); len(put) == 0 || e.doubled() || before >= 0 && first > before {
		return fact{} // or it takes the head of a block away as well
	}
	last := strings.TrimSpace(put[len(put)-1])
	for _, l := range e.shown {
		closes := strings.Trim(last, ")]}:;, ") == ""
		if l.number == e.from+len(put) && strings.TrimSpace(l.text) == last && (closes || len(last) > 8 && indent(l.text) == indent(put[len(put)-1])) {
			return fact{say: fmt.Sprintf("Line %d is a second %s: the range %d:%d left the old one behind.", l.number, quoted(last), e.from, e.to),
				call: fmt.Sprintf("Send the same edit for %d:%d.", e.from, e.to+1)}
		}
	}
	return fact{}
}

// languages are patterns of code that belongs to one language only, with the ending of its files.
var languages = [...]struct {
	ending, name string
	form         *recovery.Pattern
}{
	{".java", "Java", recovery.NewPattern(`(?m)^\s*(?:public |private |protected )(?:static |final |abstract )*(?:class|interface|void|enum)\b|^import (?:java|org|com)\.[\w.]+;\s*$`)},
	{".go", "Go", recovery.NewPattern(`(?m)^package \w+$|^func (?:\(\w+ \*?\w+\) )?\w+\(`)},
	{".rs", "Rust", recovery.NewPattern(`(?m)^(?:pub )?fn \w+.*\{$|^use \w+::`)},
	{".ts", "TypeScript", recovery.NewPattern(`(?m)^export (?:default |async |abstract )?(?:interface|const|class|function|type) |^import .* from ['"]`)},
	{".xml", "XML", recovery.NewPattern(`(?m)^<\?xml |^\s*<project\b`)},
}

// language finds a file whose text is in another language than its name says.
func (s *failureContext) language() fact {
	e := s.edited()
	file := s.firstMatch(openFile, "(open file: ")
	if e == nil || path.Ext(file) != ".py" || !strings.Contains(s.content, "E999") {
		return fact{}
	}
	for _, l := range languages {
		if l.form.MatchString(strings.Join(e.put, "\n")) {
			name := strings.TrimSuffix(path.Base(file), ".py") + l.ending
			return fact{say: "The file is " + quoted(path.Base(file)) + ", which is checked as Python, and the text is " + l.name + ", which belongs into a file with its own ending.",
				call: "Create " + quoted(name) + " and put the text there."}
		}
	}
	return fact{}
}

// Names that editors use for the text to replace.
var oldTexts = []string{"old_string", "oldString", "old_str", "old_text", "oldText", "search", "find", "original"}

// whiteSpace finds an edit whose text differs from the file only in white space.
func (s *failureContext) whiteSpace() fact {
	var old []string
	for l := range strings.Lines(text(s.args, oldTexts...)) {
		if l = strings.TrimRight(l, "\r\n"); strings.TrimSpace(l) != "" && len(old) < maxOldLines {
			old = append(old, l)
		}
	}
	file := trajectory.PathIn(s.f.Arguments)
	if len(old) == 0 || file == "" {
		return fact{}
	}
	f := fact{}
	s.earlierCalls()
	views := 0
	s.results("", func(i int, shown string) bool {
		c := s.answers[i]
		if c == nil || !strings.Contains(c.Arguments, base(file)) || text(object(c.Arguments), oldTexts...) != "" {
			return true // another file, or an edit, which may quote its own arguments
		}
		views++
		lines := strings.Split(shown, "\n")
		for k, l := range lines {
			lines[k] = numbered.ReplaceAllString(strings.TrimRight(l, "\r"), "$2")
		}
		for _, l := range old {
			if slices.Contains(lines, l) {
				continue
			}
			k := slices.IndexFunc(lines, func(have string) bool {
				return strings.Join(strings.Fields(have), " ") == strings.Join(strings.Fields(l), " ")
			})
			if k >= 0 {
				f = fact{say: fmt.Sprintf("%s has %s with other white space: %d blanks or tabs in front of it, where the call has %d.", quoted(file), quoted(strings.TrimSpace(l)), indent(lines[k]), indent(l)),
					call: "Copy that place from the result that shows the file, with its exact white space."}
			}
			return false
		}
		return views < 3
	})
	return f
}

// maxOldLines limits how many lines of the text to replace are compared.
const maxOldLines = 60

// serverFault finds a tool's server whose own answer broke its schema.
func (s *failureContext) serverFault() fact {
	if !strings.Contains(s.content, `"path"`) || !strings.HasPrefix(strings.TrimSpace(s.content), "[") {
		return fact{}
	}
	list := gjson.Parse(s.content)
	def, defined := s.definition(s.f.Tool)
	where := list.Get("0.path.0").String()
	if !list.IsArray() || !defined || where == "" || s.args.Get(gjson.Escape(where)).Exists() ||
		slices.ContainsFunc(def.Params, func(p trajectory.Parameter) bool { return p.Name == where }) {
		return fact{}
	}
	return fact{say: "The call is not to blame: the server's own answer broke its schema at " + quoted(where) + ", which is no parameter of " + quoted(s.f.Tool) + ".",
		call: "Ask with another query, or with the same once more; else go on without this source."}
}

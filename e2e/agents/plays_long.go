package agents

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// window is the scripted model's context, in its own tokens.
	window = 32000
	// parts is how many files the long task reads: three windows full.
	parts    = 20
	partSize = 20000
)

var (
	keyLine  = regexp.MustCompile(`KEY-\d\d=[a-z]+\d+`)
	partPath = regexp.MustCompile(`part-(\d\d)\.txt`)
	upTo     = regexp.MustCompile(`up to part-(\d\d)\.txt`)
)

// keys are the keys that the request shows anywhere.
func (r *Request) keys() []string {
	found := map[string]bool{}
	for _, m := range r.Messages {
		for _, k := range keyLine.FindAllString(m.Text, -1) {
			found[k] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func partName(i int) string { return fmt.Sprintf("parts/part-%02d.txt", i) }

func partKey(i int) string {
	animals := []string{"heron", "otter", "lynx", "raven", "ibex"}
	return fmt.Sprintf("KEY-%02d=%s%d", i, animals[i%len(animals)], i*37)
}

// partFiles are the files of the long task: a report, and a key at its end.
func partFiles() map[string]string {
	out := map[string]string{}
	for i := 1; i <= parts; i++ {
		out[partName(i)] = report(i) + partKey(i) + "\n"
	}
	return out
}

func report(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Station report, part %d of %d\n", i, parts)
	for n := 0; b.Len() < partSize; n++ {
		fmt.Fprintf(&b, "%02d-%04d  water level %d cm, wind from %d degrees, %d birds counted near the reed belt\n", i, n, (n*7+i*13)%400, (n*31+i*17)%360, (n*n+i)%97)
	}
	return b.String()
}

// partIn is the number of the part that a text names, 0 for none.
func partIn(text string, p *regexp.Regexp) int {
	m := p.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // two digits
	return n
}

// readPrompt asks for the parts up to number n.
func readPrompt(n int) string {
	return fmt.Sprintf("Read the files of parts, one after another, up to part-%02d.txt and tell me all keys.", n)
}

// window is the model's context for the client that asks: the instructions and tools of
// Claude Code alone are larger than half of the others' window.
func (r *Request) window() int {
	if r.offers("Read") {
		return 2 * window
	}
	return window
}

// limited is a play of a model with a context window. Whoever asks without tools
// gets the keys, which is no summary as it is asked for.
func limited(p Play) Play {
	return func(r *Request) Reply {
		switch {
		case r.N > 3*parts:
			return done(gaveUp)
		case r.Tokens() > r.window():
			return overflow(r)
		case len(r.Tools) == 0:
			return done("## Keys so far\n%s", strings.Join(r.keys(), "\n"))
		}
		return p(r)
	}
}

// longTask reads the parts that the user wants, every other one by a command,
// and tells the keys that it still sees.
var longTask = limited(func(r *Request) Reply {
	next := 1
	if last, ok := r.lastCall(); ok {
		next = partIn(last.Arguments, partPath) + 1
	}
	if next > partIn(r.Prompt(), upTo) {
		return done("All keys: %s", strings.Join(r.keys(), " "))
	}
	return calls(fmt.Sprintf("Now part %d.", next), r.part(next))
})

func (r *Request) part(n int) Call {
	if n%2 == 0 {
		return r.run("cat " + partName(n))
	}
	return r.read(partName(n))
}

const (
	findParts = "find parts -name '*.txt'"
	// astray is the part that is looked for in the wrong place.
	astray   = 13
	bareName = "part-13.txt"
)

// goesAstray is the long task with a listing first and one wrong path, long after
// the first overflow; it goes on when a note says the path that the listing has.
var goesAstray = limited(func(r *Request) Reply {
	last, ok := r.lastCall()
	if !ok {
		return calls("", r.run(findParts))
	}
	next := partIn(last.Arguments, partPath) + 1
	switch {
	case last.Arguments == r.read(bareName).Arguments:
		if !strings.Contains(r.Note(), partName(astray)) {
			return calls("", r.read(bareName))
		}
		return calls("", r.part(astray))
	case next == astray:
		return calls("", r.read(bareName))
	case next > parts:
		return done("All keys: %s", strings.Join(r.keys(), " "))
	}
	return calls(fmt.Sprintf("Now part %d.", next), r.part(next))
})

const atOnceParts = 8

// allAtOnce reads eight parts in one turn, which no window holds.
var allAtOnce = limited(func(r *Request) Reply {
	if r.Turns() > 0 {
		return done("All keys: %s", strings.Join(r.keys(), " "))
	}
	var list []Call
	for i := 1; i <= atOnceParts; i++ {
		list = append(list, r.read(partName(i)))
	}
	return calls("", list...)
})

const bigFile = "parts/all.txt"

// bigFiles is one file that is longer than the window, with a key at its end.
func bigFiles() map[string]string {
	var b strings.Builder
	for i := 1; i <= atOnceParts; i++ {
		b.WriteString(report(i))
	}
	return map[string]string{bigFile: b.String() + partKey(atOnceParts) + "\n"}
}

// inOnePiece reads the file that is longer than the window.
var inOnePiece = limited(func(r *Request) Reply {
	if r.Turns() > 0 {
		return done("The last key: %s", strings.Join(r.keys(), " "))
	}
	return calls("", r.read(bigFile))
})

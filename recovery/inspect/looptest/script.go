package looptest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A script describes the course of a session: each line is a call and its result.
//
//	3-7 make -j{i} !> {stamp} main.c:{NUM}: error    a shell's command that fails, three to seven times
//	    @read {path} => {CODE}                       in the same round: a tool's call that succeeds
//	1   = => done                                    then the last call again, once
//	or                                               another form follows; one of them is chosen
//
// A placeholder in braces is random: a lower-case one has one value per session, an upper-case one a new value
// per round; a digit distinguishes several of a kind. Counting placeholders change in each round. "@work 2" is
// two steps of other work, "@talk text" an answer without a call, followed by the user's reply after the arrow.
// !124> is a failure with this exit code. \n and \t are as in Go; a line that begins with | continues the
// result.

// phase is a number of rounds of the same lines.
type phase struct {
	least, most int
	lines       []scriptLine
}

type scriptLine struct {
	call, out string
	code      int
}

var (
	scriptTimes = regexp.MustCompile(`^(\d+)(?:-(\d+))? +`)
	scriptArrow = regexp.MustCompile(`^(.*?) (=|!(\d*))>(?: (.*))?$`)
	scriptMark  = regexp.MustCompile(`\{[A-Za-z]+\d?\}`)
)

// forms parses a script. It panics on errors, because scripts are constants.
func forms(script string) (out [][]phase) {
	out = [][]phase{nil}
	for line := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		line = strings.TrimSpace(line)
		last := &out[len(out)-1]
		if line == "or" {
			out = append(out, nil)
			continue
		}
		if m := scriptTimes.FindStringSubmatch(line); m != nil {
			p := phase{}
			p.least = number(m[1])
			p.most = max(p.least, number(m[2]))
			*last, line = append(*last, p), line[len(m[0]):]
		} else if len(*last) == 0 {
			*last = append(*last, phase{1, 1, nil})
		}
		p := &(*last)[len(*last)-1]
		if more, ok := strings.CutPrefix(line, "| "); ok {
			p.lines[len(p.lines)-1].out += "\n" + more
			continue
		}
		m := scriptArrow.FindStringSubmatch(line)
		if m == nil {
			panic("looptest: no arrow in " + line)
		}
		l := scriptLine{call: m[1], out: m[4]}
		if m[2] != "=" {
			l.code = max(1, number(m[3]))
		}
		p.lines = append(p.lines, l)
	}
	return out
}

// player fills and plays the lines of scripts.
type player struct {
	*session
	once, anew  map[string]string
	round, from int    // rounds so far, and the start of counting
	last        string // the last call
}

func (s *session) player() *player {
	return &player{session: s, once: map[string]string{}, anew: map[string]string{}, from: s.between(2, 900)}
}

// play plays one of the script's forms. Each round of its last phase is one occurrence of the loop of that kind.
func (s *session) play(script, kind string) {
	all := forms(script)
	phases, p, say := all[s.IntN(len(all))], s.player(), s.texts()
	for i, ph := range phases {
		for n := range s.between(ph.least, ph.most) {
			for _, l := range ph.lines {
				p.line(l, say)
			}
			p.next()
			switch {
			case i < len(phases)-1 || kind == "":
			case kind == Counter:
				s.risen(n + 1)
			default:
				s.occurrence(n + 1)
			}
		}
	}
}

// next ends a round.
func (p *player) next() { p.round++; clear(p.anew) }

func (p *player) line(l scriptLine, say func() string) {
	switch do, text, _ := strings.Cut(l.call, " "); do {
	case "@work":
		p.work(number(text))
	case "@talk":
		p.talk(p.fill(text), p.fill(l.out))
	default:
		st := p.step(l)
		p.add(say(), st.op, st.result)
	}
}

// step returns the step of a line.
func (p *player) step(l scriptLine) step {
	if l.call != "=" {
		p.last = l.call
	}
	return step{p.op(p.last), result{p.fill(l.out), l.code}}
}

// op parses a call: a tool call after an @, else a shell command.
func (p *player) op(call string) op {
	if call[0] != '@' {
		return sh("%s", p.fill(call))
	}
	f := strings.Fields(call)
	for i := range f {
		f[i] = p.fill(f[i])
	}
	args := f[1:]
	f = append(f, "", "", "")
	switch f[0] {
	case "@read":
		return op{do: read, path: f[1], n: number(f[2])}
	case "@edit":
		return op{do: edit, path: f[1], a: p.fill("{LINE}"), b: p.fill("{CODE}")}
	case "@same": // the same edit each time
		return op{do: edit, path: f[1], a: p.fill("{line}"), b: p.fill("{code}")}
	case "@write":
		return op{do: write, path: f[1], a: p.fill("{CODE}")}
	case "@rewrite": // the same text each time
		return op{do: write, path: f[1], a: p.fill("{code}")}
	case "@grep":
		return op{do: grep, a: f[1], path: f[2]}
	case "@list":
		return op{do: list, path: f[1]}
	case "@wait":
		return op{do: wait, n: number(f[1])}
	}
	o := op{do: api, path: f[0][1:]}
	for _, a := range args {
		key, val, _ := strings.Cut(a, "=")
		if n := number(val); strconv.Itoa(n) == val {
			o.args = append(o.args, arg{key, n})
		} else {
			o.args = append(o.args, arg{key, val})
		}
	}
	return o
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// fill replaces the placeholders of a text.
func (p *player) fill(text string) string {
	return scriptMark.ReplaceAllStringFunc(strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(text), func(m string) string {
		name := m[1 : len(m)-1]
		kind := strings.ToLower(strings.TrimRight(name, "0123456789"))
		draw, drawn := drawing[kind], p.once
		if counts := counting[kind]; counts != nil {
			draw, drawn = counts, p.anew
		} else if name != strings.ToLower(name) {
			drawn = p.anew
		}
		if draw == nil {
			return m
		}
		if _, ok := drawn[name]; !ok {
			drawn[name] = draw(p)
		}
		return drawn[name]
	})
}

// drawing are the random placeholders, counting those that change in each round.
var (
	drawing = map[string]func(p *player) string{
		"ident": func(p *player) string { return p.ident() }, "path": func(p *player) string { return p.path() },
		"folder": func(p *player) string { return p.folder() }, "noun": func(p *player) string { return p.noun() },
		"hash": func(p *player) string { return p.hex(12) }, "short": func(p *player) string { return p.hex(6) },
		"num": func(p *player) string { return fmt.Sprint(p.between(11, 900)) }, "few": func(p *player) string { return fmt.Sprint(p.between(2, 9)) },
		"big": func(p *player) string { return fmt.Sprint(p.between(1e6, 9e6)) }, "pid": func(p *player) string { return fmt.Sprint(p.pid()) },
		"stamp": func(p *player) string { return p.stamp() }, "secs": func(p *player) string { return p.seconds() },
		"say": func(p *player) string { return p.say() }, "line": func(p *player) string { return p.code(1) },
		"code": func(p *player) string { return p.code(6) }, "long": func(p *player) string { return p.code(200) },
		"names": func(p *player) string { return p.listing(7) }, "hits": func(p *player) string { return p.hits(p.ident(), 4) },
		"list":  func(p *player) string { return p.items(4) },
		"state": func(p *player) string { return p.pick("in_progress", "running", "pending", "queued") },
		"suite": func(p *player) string {
			return p.pick("pytest -q tests", "npm test", "go test ./...", "cargo test --workspace", "make check")
		},
		"updated": func(p *player) string { return p.pick("The file has been updated.", "ok", "Done!") },
		"nothing": func(p *player) string { return p.pick("", "", "ok", "done") },
		"address": func(p *player) string { return "https://docs.example.com/" + p.ident() },
	}
	counting = map[string]func(p *player) string{
		"i": func(p *player) string { return fmt.Sprint(p.round + 1) }, "count": func(p *player) string { return fmt.Sprint(p.from + p.round) },
		"next": func(p *player) string { return fmt.Sprint(p.from + p.round + 1) }, "double": func(p *player) string { return fmt.Sprint(5 << p.round) },
		"tens": func(p *player) string { return fmt.Sprint(p.from + 10*p.round) }, "offset": func(p *player) string { return fmt.Sprint(61 + 60*p.round) },
		"up":   func(p *player) string { return fmt.Sprint(10 + 7*p.round + p.IntN(7)) }, // by a different amount each time
		"down": func(p *player) string { return fmt.Sprint(90 - 3*p.round - p.IntN(3)) },
		"day": func(p *player) string {
			return time.Date(2025, 1, p.from+p.round, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		},
	}
)

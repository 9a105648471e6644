package annotate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
)

// backwards prefers the last strategy of each chain.
type backwards struct {
	withhold bool
	asked    []recovery.Question
}

func (b *backwards) Choose(q recovery.Question) recovery.Preference {
	b.asked = append(b.asked, q)
	p := recovery.Preference{Strategies: slices.Clone(q.Strategies), Withhold: b.withhold, Template: "t"}
	slices.Reverse(p.Strategies)
	return p
}

// What was learned orders the strategies, and withholds a note but the firm one; what
// learns from it is told what the note was about.
func TestChooser(t *testing.T) {
	s, told := stage(t, nil)
	plain := failing().exchange(t)
	if err := s.Prepare(t.Context(), plain); err != nil || plain.Guidance == "" {
		t.Fatal(err, plain.Guidance)
	}
	usual := told.Events()[0].Advice.Strategies
	for _, withhold := range []bool{false, true} {
		s, told := stage(t, func(c *annotate.Config) { c.Risky = true })
		chooser := &backwards{withhold: withhold}
		s.Chooser = chooser
		x := failing().exchange(t)
		if err := s.Prepare(t.Context(), x); err != nil || len(chooser.asked) != 1 {
			t.Fatal(err, chooser.asked)
		}
		a, q := told.Events()[0].Advice, chooser.asked[0]
		if (x.Guidance == "") != withhold || a.Withheld != withhold || a.HeldOut {
			t.Errorf("withheld: %v, %+v, note %q", withhold, a, x.Guidance)
		}
		if len(q.Strategies) < 2 || a.Strategies[0] != q.Strategies[len(q.Strategies)-1] || a.Strategies[0] == usual[0] {
			t.Errorf("of %q it proposed %q, usually %q", q.Strategies, a.Strategies, usual)
		}
		f := x.Results[0]
		if a.Chain != "command_not_found" || a.Template != "t" || a.Key != q.Key || a.Fingerprint != f.Fingerprint || a.At != f.Index || q.Line != f.Line || q.Session != x.Session {
			t.Errorf("%+v, asked %+v", a, q)
		}

		// The third time is the last before a stop: the note is firm, and given.
		firm := failing().exchange(t)
		firm.Turn.Seen, firm.Turn.Streak = 3, 3
		firm.Ladder.Rung, firm.Ladder.Same = recovery.RungStuck, 3
		firm.Loops = []recovery.Loop{{Kind: recovery.LoopSameError, Count: 3, Tools: []string{"bash"}, Fingerprint: 1, New: true}}
		if err := s.Prepare(t.Context(), firm); err != nil {
			t.Fatal(err)
		}
		if a := told.Events()[1].Advice; firm.Guidance == "" || a.Withheld {
			t.Errorf("the firm note was withheld: %+v", a)
		}
	}
}

// Failures of many kinds at once get one note, which escalates.
func TestEnvironmentNote(t *testing.T) {
	s, told := stage(t, nil)
	chooser := &backwards{}
	s.Chooser = chooser
	for _, asks := range []bool{false, true} {
		c := failing()
		if asks {
			c = agent(read, ask).call("read", object{"path": "x"}, "Error: ENOENT: no such file or directory, open 'x'")
		}
		x := c.exchange(t)
		x.Ladder.Kind = 1
		x.Failing = []recovery.Category{recovery.CommandNotFound, recovery.DiskFull, recovery.NetworkError}
		if err := s.Prepare(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"no such command here; no space left to write to; a network error", "ask the user"} {
			if !strings.Contains(x.Guidance, want) {
				t.Errorf("no %q in\n%s", want, x.Guidance)
			}
		}
		if strings.Contains(x.Guidance, "df -h") == asks || strings.Contains(x.Guidance, "with `ask_user`") != asks || strings.Contains(x.Guidance, "1. ") {
			t.Errorf("the note is\n%s", x.Guidance)
		}
	}
	if a := told.Events()[0].Advice; a.Strategies[0] != annotate.CheckEnvironment || a.Chain != "" || len(chooser.asked) != 0 {
		t.Errorf("%+v, asked %v", a, chooser.asked)
	}
	x := failing().exchange(t)
	x.Failing = []recovery.Category{recovery.CommandNotFound, recovery.DiskFull, recovery.NetworkError}
	x.Loops = []recovery.Loop{{Kind: recovery.LoopSameError, Count: 3, Tools: []string{"bash"}, Fingerprint: 1, New: true}}
	if note, _ := s.Note(x); !strings.Contains(note, "Do not make it again") {
		t.Errorf("before a stop the note has to be firm:\n%s", note)
	}
}

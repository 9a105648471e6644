package repair

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// runsAway feeds a text in pieces and returns the number of bytes after which the watch fires, or -1.
func runsAway(p recovery.Part, text string) int {
	w := newWatch(Defaults().Repetition)
	r := rand.New(rand.NewPCG(1, uint64(len(text))))
	for i := 0; i < len(text); {
		n := min(1+r.IntN(40), len(text)-i)
		if w.Feed(p, []byte(text[i:i+n])) {
			return i + n
		}
		i += n
	}
	return -1
}

func times(n int, unit string) string { return strings.Repeat(unit, n) }

func variedText() string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "This is sentence number %d, about the matter %x.\n", i, i*i*7919)
	}
	return b.String()
}

func TestRunaways(t *testing.T) {
	paragraph := "I should look at the configuration once more, because the tests still fail. " + strings.Repeat("Something else may be wrong with the parser of dates. ", 1)
	for name, c := range map[string]struct {
		part   recovery.Part
		text   string
		within int // it must fire within so many bytes
	}{
		"line":           {recovery.PartText, times(400, "I will try again now.\n"), 8000},
		"word":           {recovery.PartReasoning, times(4000, "wait "), 8000},
		"sentence":       {recovery.PartReasoning, times(200, "Let me check the file again. "), 8000},
		"paragraph":      {recovery.PartText, times(200, paragraph+"\n\n"), 12000},
		"two lines":      {recovery.PartText, times(400, "Hmm, let me think.\nNo, that is wrong.\n"), 8000},
		"long unit":      {recovery.PartReasoning, times(60, variedText()[:1900]+"\n"), 45000},
		"chinese":        {recovery.PartText, times(900, "我再试一次。"), 8000},
		"spaces":         {recovery.PartArguments, times(20000, "\n"), 12000},
		"escaped spaces": {recovery.PartArguments, times(20000, `\n`), 12000},
		"arguments":      {recovery.PartArguments, times(2000, `please see the next line\n`), 24000},
		"exclamation":    {recovery.PartText, times(100000, "!"), 40000},
	} {
		for _, before := range []string{"", variedText()} {
			at := runsAway(c.part, before+c.text)
			if at < 0 || at > len(before)+c.within || at < len(before)+2000 {
				t.Errorf("%s: fired after %d bytes, of which %d precede the repetition", name, at, len(before))
			}
		}
	}
}

func TestNoRunaways(t *testing.T) {
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"report":         variedText(),
		"rules":          times(50, "Heading\n"+times(78, "=")+"\n") + variedText(),
		"long rule":      times(6000, "="),
		"markdown table": "| name | value |\n|" + times(40, "---|") + "\n" + numbered("| row %d | ok |\n", 400),
		"equal rows":     "| a | b |\n|---|---|\n" + times(300, "| ok | ok |\n"),
		"ascii table":    times(100, "+------+------+\n|      |      |\n"),
		"numbered":       numbered("%d. Check the next file.\n", 400),
		"json rows":      "[" + numbered(`{"id": %d, "status": "ok", "message": "done"},`, 400) + "]",
		"equal json":     "[" + times(300, `{"x": 0, "y": 0},`) + "]",
		"code":           times(120, "    <td class=\"cell\"></td>\n"),
		"nops":           times(800, "    nop;\n"),
		"ascii art":      times(60, "   ######   ####   \n  ##    ## ##  ##  \n"),
		"forty lines":    times(39, "I will try again, and this is a rather long line of text to say it again and again.\n"),
		"hex dump":       numbered("%08x  00 00 00 00 00 00 00 00\n", 800),
	} {
		for _, p := range []recovery.Part{recovery.PartText, recovery.PartReasoning, recovery.PartArguments} {
			if at := runsAway(p, text); at >= 0 {
				t.Errorf("%s: fired in %d after %d of %d bytes", name, p, at, len(text))
			}
		}
	}
	for name, text := range map[string]string{
		"base64":   `{"data":"` + times(200000, "A") + `"}`,
		"base64 2": `{"data":"` + times(20000, "AAECAwQFBgcICQ") + `"}`,
		"hex":      times(30000, "deadbeef"),
		"digits":   times(60000, "0"),
		"zeros":    times(20000, "0, 0, 0, 0,\\n"),
		"drawing":  times(3000, "----------\\n"),
		"file":     times(150, `    assert.Equal(t, want, got)\n`),
		"lines":    times(100, `this line stands in the file many times, and rightly so\n`),
	} {
		if at := runsAway(recovery.PartArguments, text); at >= 0 {
			t.Errorf("%s: fired after %d of %d bytes", name, at, len(text))
		}
	}
}

// The parts of an answer are independent, and a watch that has fired keeps firing.
func TestWatchParts(t *testing.T) {
	w := mender().Watch(request(t, ""), -1)
	fired := 0
	for range 1000 {
		if w.Feed(recovery.PartReasoning, []byte("again and again. ")) {
			fired++
		}
		if w.Feed(recovery.PartText, []byte(fmt.Sprint(fired, "x"))) && fired == 0 {
			t.Fatal("the text fired")
		}
	}
	if fired < 500 {
		t.Errorf("fired %d times", fired)
	}
	if w.Feed(recovery.Part(200), []byte("x")) != true {
		t.Error("an unknown part changed the result")
	}
}

// An answer that is too short for a runaway is not watched.
func TestWatchShort(t *testing.T) {
	m, req := mender(), request(t, "")
	limit := Defaults().Repetition.Bytes
	if m.Watch(req, 0) != nil || m.Watch(req, limit-1) != nil || m.Watch(req, limit) == nil || m.Watch(req, -1) == nil {
		t.Error("the wrong answers are watched")
	}
	w := m.Watch(req, -1)
	if w.Feed(recovery.PartText, bytes.Repeat([]byte("x"), limit-1)) {
		t.Error("a text below the limit fired")
	}
}

func FuzzWatch(f *testing.F) {
	f.Add([]byte("abcabc"), 3)
	f.Add([]byte("\\n\\n"), 1000)
	f.Fuzz(func(t *testing.T, unit []byte, n int) {
		w := newWatch(Defaults().Repetition)
		total := 0
		for i := 0; i < min(n, 20000) && total < 1<<18; i++ {
			fired := w.Feed(recovery.Part(i%7/6), unit)
			if total += len(unit); fired && total < Defaults().Repetition.Bytes {
				t.Fatalf("fired after %d bytes", total)
			}
		}
	})
}

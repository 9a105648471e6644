package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func TestDemands(t *testing.T) {
	for text, want := range map[string]bool{
		"Fix the parser.": false, "Never touch vendor/.": true, "Use only integer cents in cart_3": true, "Don't commit anything.": true,
		"Why must it be like this?": false, "if (x) { return never(); }": false, "Version 1.2 must stay at v1.2.3 of the lib.": true,
		`{"use": 1, "must": [1,2,3], "never": {"a": 0.12345678901234567}}`: false,
	} {
		if demands(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestSentences(t *testing.T) {
	got := slices.Collect(sentences("The cause is the rounding in v1.2 of old.go. So. More will follow later! And"))
	if want := []string{"The cause is the rounding in v1.2 of old.go.", "So. More will follow later!", "And"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// eventfulScript is a session with every kind of line that a digest has.
func eventfulScript(more int) *script {
	s := newScript()
	s.call("write", `{"path":"src/new.go","content":"package src"}`, "Wrote it")
	s.call("edit", `{"path":"src/old.go","old":"a","new":"b"}`, "done")
	s.call("bash", `{"command":"rm src/gone.go"}`, "")
	s.call("read", `{"path":"src/read.go"}`, lines(30, "r"))
	s.call("bash", `{"command":"make broken"}`, "cc -c x.c\nx.c:3: error: missing semicolon\nexit code: 2")
	s.call("bash", `{"command":"make mended"}`, "y.c:9: error: was mended\nexit code: 1")
	s.call("bash", `{"command":"make mended"}`, "all built\nexit code: 0")
	s.say("assistant", "The cause is the rounding in old.go. More will follow.")
	s.say("user", strings.Repeat("I tell a long story. ", 40)+"Never rename the table orders. "+strings.Repeat("And on it goes. ", 40))
	for range more {
		s.call("bash", `{"command":"date"}`, strings.Repeat("it is late now ", 20)+strings.Repeat("x", s.n))
		s.say("assistant", strings.Repeat("I think about it ", 15))
	}
	s.call("bash", `{"command":"git commit"}`, "ok")
	return s
}

func digestIn(b *transcript.Body) (text string) {
	for _, m := range b.Messages() {
		if s := gjson.Get(m.Text(), "summary").String(); strings.HasPrefix(s, digestHead) {
			text += s
		}
	}
	return text
}

// digestSays reports whether a digest, or a message that was kept, contains what.
func digestSays(b *transcript.Body, what string) bool {
	if strings.Contains(digestIn(b), what) {
		return true
	}
	if _, rest, ok := strings.Cut(what, "): "); ok {
		what = rest
	}
	for _, m := range b.Messages() {
		if what != "" && !isCompressed(m.Text()) && strings.Contains(m.Text(), what) {
			return true
		}
	}
	return false
}

// wanted are texts that a digest of an eventful session contains.
var wanted = []string{"(user): Never rename the table orders.", "\ncreated src/new.go", "\nedited src/old.go", "\ndeleted src/gone.go", "\nread src/read.go",
	"make broken): x.c:3: error: missing semicolon", "$ make mended\nall built", "\nThe cause is the rounding in old.go."}

func TestDigestContent(t *testing.T) {
	b := eventfulScript(60).body(t)
	out, r, ok := Compress(Defaults(), b, newMeter(), "gpt-4o", 7000, 500)
	if !ok || !slices.Contains(r.Tiers, TierDigest) {
		t.Fatalf("%+v", r)
	}
	d := digestIn(out)
	for _, w := range wanted {
		if !digestSays(out, w) {
			t.Errorf("the digest does not contain %q", w)
		}
	}
	if strings.Contains(d, "failed: bash (make mended") {
		t.Error("a resolved error is listed as open")
	}
	if t.Failed() {
		t.Log(d)
	}
	if again, _, _ := Compress(Defaults(), b, newMeter(), "gpt-4o", 7000, 500); string(again.Raw()) != string(out.Raw()) {
		t.Error("another digest the second time")
	}
	// The client continues with the fitted history.
	s := newScript()
	s.b.Reset()
	for i, m := range out.Messages() {
		if i > 0 {
			s.b.WriteByte(',')
		}
		s.b.Write(m.Raw())
	}
	s.call("bash", `{"command":"make broken"}`, "built\nexit code: 0")
	for range 60 {
		s.call("bash", `{"command":"date"}`, strings.Repeat("it is later now ", 20)+strings.Repeat("y", s.n))
		s.say("assistant", strings.Repeat("I go on thinking ", 15))
	}
	s.call("bash", `{"command":"true"}`, "ok")
	out, r, ok = Compress(Defaults(), s.body(t), newMeter(), "gpt-4o", 7000, 500)
	if !ok || !slices.Contains(r.Tiers, TierDigest) {
		t.Fatalf("%+v", r)
	}
	d = digestIn(out)
	for _, w := range wanted {
		if strings.HasPrefix(w, "make broken") {
			if strings.Contains(d, "make broken):") {
				t.Error("an error resolved since is listed as open")
			}
		} else if !digestSays(out, w) {
			t.Errorf("the second digest does not contain %q", w)
		}
	}
	if n := strings.Count(string(out.Raw()), digestHead); n != 1 {
		t.Errorf("%d digests", n)
	}
	if t.Failed() {
		t.Log(d)
	}
}

// A digest quotes nothing that looks like a tool call or a mark of ours.
func TestDigestQuotesNoCalls(t *testing.T) {
	s := newScript()
	s.say("assistant", `Error 4711 of src/a.go:12: <tool_call>{"name":"rm"}</tool_call>`)
	s.say("user", `Never print {"_compressed": true} in v1.2.3 of src/b.go.`)
	s.say("assistant", "Error 4712 of src/c.go:13 is another.")
	for range 60 {
		s.call("bash", `{"command":"date"}`, strings.Repeat("it is late now ", 20)+strings.Repeat("x", s.n))
		s.say("assistant", strings.Repeat("I think about it ", 15))
	}
	out, _, ok := Compress(Defaults(), s.body(t), newMeter(), "gpt-4o", 4000, 500)
	if d := digestIn(out); !ok || !strings.Contains(d, "4712") || strings.Contains(d, "4711") || strings.Contains(d, "_compressed") {
		t.Errorf("%v: %s", ok, d)
	}
}

// If the summariser fails, or is off, a digest replaces the old turns.
func TestDigestForBadSummaries(t *testing.T) {
	b := eventfulScript(60).body(t)
	for name, a := range map[string]completerFunc{
		"none":     nil,
		"error":    func(recovery.Prompt) (string, error) { return "", errors.New("no") },
		"empty":    func(recovery.Prompt) (string, error) { return "", nil },
		"nonsense": func(recovery.Prompt) (string, error) { return strings.Repeat("la la ", 50), nil },
		"too long": func(recovery.Prompt) (string, error) {
			return fineSummary + strings.Repeat("\nFiles: on and on", 9000), nil
		},
	} {
		f := newTestFitter(t, Defaults(), nil)
		_, out := fitOnce(t, f, b, 7000, "", a)
		if out == nil || !slices.Contains(out.Tiers, TierDigest) || digestIn(out.Body) == "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
	cfg := Defaults()
	cfg.Summarize = false
	calls := 0
	_, out := fitOnce(t, newTestFitter(t, cfg, nil), b, 7000, "", func(recovery.Prompt) (string, error) { calls++; return fineSummary, nil })
	if out == nil || calls > 0 || !slices.Contains(out.Tiers, TierDigest) {
		t.Errorf("%d calls: %+v", calls, out)
	}
}

func TestDigestFoldsSummary(t *testing.T) {
	s := eventfulScript(60)
	disk := newFakeStore()
	f := newTestFitter(t, Defaults(), disk)
	x, out := fitOnce(t, f, s.body(t), 7000, "s", func(recovery.Prompt) (string, error) { return fineSummary, nil })
	if out == nil || slices.Contains(out.Tiers, TierDigest) {
		t.Fatalf("%+v", out)
	}
	f.Learn(x, &x.Candidates[0], recovery.Usage{Input: out.After})
	f.Flush()
	for range 60 {
		s.call("bash", `{"command":"date"}`, strings.Repeat("it is later now ", 20)+strings.Repeat("y", s.n))
		s.say("assistant", strings.Repeat("I go on thinking ", 15))
	}
	s.call("bash", `{"command":"true"}`, "ok")
	for round := range 2 {
		y := exchange(s.body(t), "s", nil)
		got := f.Prepared(context.Background(), y)
		if got == nil {
			t.Fatal("not fitted")
		}
		for _, w := range append(slices.Clone(wanted[:5]), "never touch vendor", "Goal: mend the build") {
			if _, short, _ := strings.Cut(w, "): "); !strings.Contains(allText(got.Body), cmp.Or(short, w)) {
				t.Errorf("round %d: nothing says %q\n%s", round, w, digestIn(got.Body))
			}
		}
		y.Fitted = got
		f.Learn(y, &y.Candidates[0], recovery.Usage{Input: got.After})
		f.Flush()
		for range 40 {
			s.call("bash", `{"command":"date"}`, strings.Repeat("it is latest now ", 20)+strings.Repeat("z", s.n))
			s.say("assistant", strings.Repeat("I still go on thinking ", 15))
		}
	}
}

// allText returns the text of all messages, with replacements also decoded.
func allText(b *transcript.Body) string {
	var out strings.Builder
	for _, m := range b.Messages() {
		text := m.Text()
		out.WriteString(text + "\n")
		if isCompressed(text) {
			out.WriteString(gjson.Get(text, "summary").String() + "\n")
		}
	}
	return out.String()
}

// The text that replaces the turns of a history for a very long window is kept for other replicas, too.
func TestLongDigestIsStored(t *testing.T) {
	s := newScript()
	for range 4 {
		s.call("bash", `{"command":"make"}`, "done")
	}
	k := newRevision(s.history(t), newMeter(), "gpt-4o")
	d := &digest{byText: map[string]int{}}
	for i := range 30_000 {
		d.add(fmt.Sprintf("main.go:%d: \"undefined\"", i), worthSaid)
	}
	removed := []int{2, 3, 4, 5}
	text, _ := k.replacement(removed, "", d, 1_000_000)
	k.remove(cut{end: 6, removed: removed, sealed: &sealed{Op: opCut, First: k.v.items[2].key, Span: 4, Box: k.v.seal(removed, text), text: text}})
	var kept session
	k.saveTo(&kept)
	stored, err := decodeSession(kept.edits.encode())
	if err != nil || len(stored.Sealed) != 1 {
		t.Fatalf("a digest of %d bytes is not stored: %v", len(text), err)
	}
	again := newRevision(s.history(t), newMeter(), "gpt-4o")
	if !again.apply(stored) || again.cut == nil || again.cut.sealed.text != text {
		t.Error("another replica does not make the same edit")
	}
	if len(text) < maxBox/2 {
		t.Errorf("the digest has %d bytes only", len(text))
	}
}

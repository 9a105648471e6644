package probetest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/recoverytest"
)

// sessions returns synthetic sessions and recorded ones.
func sessions(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{"synthetic 20k": Synthetic(1, 20_000), "synthetic 150k": Synthetic(2, 150_000), "synthetic 600k": Synthetic(3, 600_000)}
	files, err := filepath.Glob(filepath.Join("..", "testdata", "[su]*", "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded sessions", err)
	}
	for _, f := range files {
		out[filepath.Base(f)] = recoverytest.Gunzip(t, f)
	}
	return out
}

// A probe occurs in its session, in the message that it names, and is short.
func TestProbesAreInTheirSession(t *testing.T) {
	for name, body := range sessions(t) {
		list, _, _ := parseSession(body)
		text := Text(body)
		var raw struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(body, &raw); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(2) {
			probes := Probes(seed, body)
			if len(probes) == 0 || len(body) > 100_000 && len(probes) < 6 {
				t.Errorf("%s: only %d probes", name, len(probes))
			}
			count := map[string]int{}
			for i, p := range probes {
				count[p.Kind]++
				if !Present(p, text) || p.Text == "" || p.Kind != Path && len(p.Text) > maxNeedle {
					t.Errorf("%s: %+v is not a probe of its session", name, p)
				}
				if p.Message >= len(list) || !Present(p, string(raw.Messages[p.Message])) {
					t.Errorf("%s: %+v is not in message %d", name, p, p.Message)
				}
				if slices.Contains(probes[:i], p) {
					t.Errorf("%s: %+v twice", name, p)
				}
			}
			if count[Step] < 1 || count[Step] > maxSteps || count[Path] > maxPaths || count[LastError] > maxErrors || count[Constraint] > maxConstraints {
				t.Errorf("%s: %v", name, count)
			}
		}
	}
}

func TestDeterminism(t *testing.T) {
	a, b := Synthetic(5, 200_000), Synthetic(5, 200_000)
	if !bytes.Equal(a, b) || bytes.Equal(a, Synthetic(6, 200_000)) {
		t.Error("the bytes do not follow from the seed")
	}
	if !slices.Equal(Probes(1, a), Probes(1, b)) || slices.Equal(Probes(1, a), Probes(2, a)) {
		t.Error("the probes do not follow from the seed")
	}
}

// Probes are planted facts only: no resolved error, no invented path or constraint. Over
// several seeds they cover all planted constraints and errors.
func TestProbesAgreeWithWhatWasPlanted(t *testing.T) {
	for seed := range uint64(4) {
		body, f := generate(seed, 250_000)
		asked := map[string]bool{}
		for draw := range uint64(12) {
			for _, p := range Probes(draw, body) {
				asked[p.Text] = true
				switch p.Kind {
				case LastError:
					if !slices.ContainsFunc(f.unresolved, func(s string) bool { return strings.HasPrefix(s, p.Text) }) {
						t.Errorf("seed %d: %q was mended or never happened", seed, p.Text)
					}
				case Constraint:
					if !slices.Contains(f.constraints, p.Text) {
						t.Errorf("seed %d: %q is no constraint", seed, p.Text)
					}
				case Path:
					if !f.paths[p.Text] {
						t.Errorf("seed %d: %q was not touched", seed, p.Text)
					}
				}
			}
		}
		for _, s := range slices.Concat(f.constraints, f.unresolved) {
			if !asked[needle(s)] {
				t.Errorf("seed %d: %q was never asked for", seed, s)
			}
		}
	}
}

// A synthetic session is a valid agent request of the requested size, with work for every
// kind of compression.
func TestSynthetic(t *testing.T) {
	for _, size := range []int{-1, 30_000, 120_000, 600_000} {
		for seed := range uint64(3) {
			body, f := generate(seed, size)
			if low, high := size*85/100, max(45_000, size*115/100); len(body) < low || len(body) > high {
				t.Errorf("%d bytes for %d", len(body), size)
			}
			var b struct {
				Model string
				Tools []struct{ Function struct{ Name string } }
			}
			if err := json.Unmarshal(body, &b); err != nil || b.Model == "" || len(b.Tools) != 5 {
				t.Fatalf("%+v, %v", b, err)
			}
			list, calls, _ := parseSession(body)
			if unpaired(list) != "" || list[len(list)-1].Role != "tool" || list[0].Role != "system" || list[1].Role != "user" {
				t.Errorf("%d bytes: %s", size, unpaired(list))
			}
			long, parallel, turn := 0, 0, 0
			for i, c := range calls {
				if len(c.result) > 2000 {
					long++
				}
				if i > 0 && c.at == calls[i-1].at {
					parallel++
				}
				if len(c.args) == 0 {
					t.Errorf("call %d has no arguments", i)
				}
			}
			for _, m := range list {
				if m.Role == "user" {
					turn++
				}
			}
			if size >= 600_000 && (long < 20 || parallel < 3 || turn < 2 || f.rereads < 5 || f.staleReads < 5 || len(f.resolved) < 2 || len(f.unresolved) < 2 || len(f.constraints) < 2) {
				t.Errorf("seed %d, %d bytes: %d long results, %d parallel calls, %d user turns, %d re-reads, %d overtaken reads, %d mended errors",
					seed, size, long, parallel, turn, f.rereads, f.staleReads, len(f.resolved))
			}
		}
	}
}

// unpaired describes a call without a result, or the reverse; "" if there is none.
func unpaired(list []message) string {
	open := map[string]bool{}
	for _, m := range list {
		if m.Role == "tool" && !open[m.ID] {
			return "an orphan " + m.ID
		}
		delete(open, m.ID)
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return "a call without a result"
	}
	return ""
}

// DropOldest loses old facts, and keeps the end, the system message and all pairs.
func TestDropOldest(t *testing.T) {
	for name, body := range sessions(t) {
		before, _, _ := parseSession(body)
		for _, share := range []int{100, 60, 25, 1} {
			out := DropOldest(body, len(body)*share/100)
			after, _, _ := parseSession(out)
			if share == 100 && !bytes.Equal(out, body) {
				t.Errorf("%s: it was small enough", name)
			}
			if len(after) == 0 || after[0].Role != before[0].Role || unpaired(after) != "" || !bytes.Equal(after[len(after)-1].Content, before[len(before)-1].Content) {
				t.Fatalf("%s at %d %%: %d messages, %s", name, share, len(after), unpaired(after))
			}
			if share == 60 && len(body) > 100_000 && (len(out) > len(body)*share/100 || len(out) < len(body)*30/100) {
				t.Errorf("%s: %d of %d bytes for 60 %%", name, len(out), len(body))
			}
		}
	}
	body := Synthetic(9, 600_000)
	kept, lost := 0, 0
	small := Text(DropOldest(body, len(body)/4))
	for _, p := range Probes(1, body) {
		if Present(p, small) {
			kept++
		} else if lost++; p.Kind == Step {
			t.Errorf("%+v was lost: it is at the end", p)
		}
	}
	if lost < 3 || kept < 3 {
		t.Errorf("%d kept, %d lost", kept, lost)
	}
}

func TestPresent(t *testing.T) {
	for _, c := range []struct {
		kind, needle, text string
		want               bool
	}{
		{Path, "src/a.go", "read src/a.go.", true},
		{Path, "src/a.go", "/repo/src/a.go:12", true},
		{Path, "src/a.go", "src/a.gob", false},
		{Path, "src/a.go", "old-src/a.go", false},
		{Path, "src/a.go", "src/a.go.bak src/a.go", true},
		{Path, "src/a.go", "src/a.go.bak", false},
		{Path, "a.go", "b.a.go", false},
		{Step, `say "no"`, `{"messages":[{"content":"say \"no\""}]}`, true},
		{Step, `say "no"`, `{"messages":[{"tool_calls":[{"function":{"arguments":"{\"x\":\"say \\\"no\\\"\"}"}}]}]}`, true},
		{LastError, "messages", `{"messages":[]}`, false}, // keys are not text
		{LastError, "", "anything", false},
	} {
		if got := Present(Probe{Kind: c.kind, Text: c.needle}, c.text); got != c.want {
			t.Errorf("%s %q in %q: %v", c.kind, c.needle, c.text, got)
		}
	}
}

// What counts as a fact, on sessions small enough to read.
func TestRules(t *testing.T) {
	text := func(list ...string) string { // a text protocol that begins with the user
		var b strings.Builder
		for i, s := range list {
			content, _ := json.Marshal(strings.ReplaceAll(s, "#", "```"))
			b.WriteString(map[bool]string{true: "", false: ","}[i == 0] + `{"role":"` + []string{"user", "assistant"}[i%2] + `","content":` + string(content) + `}`)
		}
		return `{"messages":[` + b.String() + `]}`
	}
	for _, c := range []struct {
		name, body, kind string
		want             []string
	}{
		{"constraints", text("Please never edit the lock file. Why don't you use the old one? I don't know what to do. Keep it short and simple.", "ok"),
			Constraint, []string{"Keep it short and simple", "Please never edit the lock file"}},
		{"observations do not restrict", text("fix the build", "#\nmake\n#", "You must never run this as root."), Constraint, nil},
		{"an observation fails", text("fix the build", "#\nmake all\n#", "cc: reading\nbash: gcc-14: command not found"), LastError, []string{"bash: gcc-14: command not found"}},
		{"and was mended", text("fix", "#\nmake -j 2 all\n#", "bash: gcc-14: command not found", "#\ncd x && make all | tail\n#", "done"), LastError, nil},
		{"paths of commands", text("fix", "#\ncat src/main.c\n#", "int main;", "#\nls lib\n#", "a.c"), Path, []string{"src/main.c"}},
		{"a file that is not there", text("fix", "#\ncat src/main.c\n#", "cat: src/main.c: No such file or directory"), Path, nil},
		{"the last step", text("fix", "Reading the sources first.", "go on", "Now the linker script is next."), Step, []string{"Now the linker script is next."}},
	} {
		var got []string
		for _, p := range Probes(1, []byte(c.body)) {
			if p.Kind == c.kind {
				got = append(got, p.Text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

func FuzzProbes(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"Never touch the file a.go."},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"edit","arguments":"{\"path\":\"b/a.go\"}"}},{"id":"2","function":{"name":"bash","arguments":"{\"cmd\":\"make x\"}"}}]},{"role":"tool","tool_call_id":"1","content":"ok"},{"role":"tool","tool_call_id":"2","content":[{"text":"Error: undefined symbol\nCommand exited with code 1"}]}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":"x\n` + "```" + `\nls a/b.go\n` + "```" + `"},{"role":"user","content":"bash: ls: command not found"}]}`))
	f.Add([]byte(`{"messages":[null,{"role":"tool","tool_call_id":"","content":[{"text":1}]},{"tool_calls":[{"function":{"arguments":"[]"}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range Probes(1, body) {
			if !Present(p, Text(body)) {
				t.Errorf("%+v", p)
			}
		}
		if out := DropOldest(body, len(body)/2); json.Valid(body) && !json.Valid(out) {
			t.Errorf("%q", out)
		}
	})
}

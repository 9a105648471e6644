package fit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// shellOutput returns build output of about bytes.
func shellOutput(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "[%04d] src/pkg%d/file%d.c:%d:7: compiling object 0x%x ... ok\n", i, i%7, i, i%900, i*7919)
		if i == 300 {
			b.WriteString("src/core/join.c:212:9: error: implicit declaration of function 'frob_join'\n")
		}
	}
	return b.String()
}

// Pasted text in a user message is shortened and marked; the user's own words stay.
func TestPastedIntoMessage(t *testing.T) {
	if testing.Short() {
		t.Skip("a generator of long messages")
	}
	const before, after = "Here is what make printed on the build machine, why does it fail?\n\n", "\n\nPlease do not touch the vendor folder, and answer briefly."
	paste := shellOutput(85_000)
	prose := strings.Repeat("The committee met again and went on about the roof of the old hall. ", 1400)
	for name, text := range map[string]string{
		"bare":      before + paste + after,
		"fenced":    before + "```\n" + paste + "```" + after,
		"at end":    before + paste,
		"in front":  paste + after,
		"two":       before + paste[:40_000] + "\nAnd on the other machine it says something else:\n" + paste[40_000:] + after,
		"all prose": before + prose + after,
	} {
		for _, where := range []string{"last", "middle", "first"} {
			for _, window := range []int{32_000, 16_000} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, where, window), func(t *testing.T) {
					s := newScript()
					if where == "first" {
						s = &script{}
						s.say("system", "You are an agent.").say("user", text)
					}
					s.call("bash", `{"command":"ls"}`, "Makefile")
					if where != "first" {
						s.say("user", text)
					}
					if where == "middle" {
						s.call("bash", `{"command":"make"}`, "fine")
					}
					b := s.body(t)
					f := newTestFitter(t, Defaults(), nil)
					if total := f.parts.Meter.Measure(b, "gpt-4o").Total; total+outputReserve(b, window) < window {
						if name != "all prose" || window < 32_000 {
							t.Fatalf("%d tokens fit: nothing is tested", total)
						}
						return
					}
					_, out := fitOnce(t, f, b, window, "s", nil)
					if name == "all prose" && where == "first" {
						if out != nil {
							t.Error("the task itself was shortened")
						}
						return
					}
					if out == nil {
						t.Fatal("it is not fitted")
					}
					all := string(out.Body.Raw())
					for _, part := range []string{before, after, "And on the other machine it says something else:"} {
						quoted := string(transcript.String(strings.TrimSpace(part)))
						if strings.Contains(text, part) && !strings.Contains(all, quoted[1:len(quoted)-1]) {
							t.Errorf("the person's words are gone: %q", part)
						}
					}
					if name != "all prose" && !strings.Contains(all, "frob_join") {
						t.Error("the error in the paste is gone")
					}
					if !strings.Contains(all, `_compressed`) || !strings.Contains(all, "the user pasted here") {
						t.Error("it is not marked")
					}
					budget := window - outputReserve(b, window)
					if out.After > budget*62/100 || out.After < budget*43/100 {
						t.Errorf("%d tokens are left of %d", out.After, budget)
					}
					s.say("assistant", "So.").say("user", "Go on.")
					next := f.Prepared(context.Background(), exchange(s.body(t), "s", nil))
					if next == nil || !strings.HasPrefix(string(messagesOf(next.Body)), string(messagesOf(out.Body))) {
						t.Error("the next request is not fitted the same way")
					}
				})
			}
		}
	}
}

// The user's newest message stays as it is while older turns can give way, whatever was pasted into it.
func TestNewestMessageStays(t *testing.T) {
	const window = 16_000
	for kind, text := range map[string]string{
		"prose": strings.Repeat("Please change the parser so that it reads the whole header, and say why it did not. ", 1000),
		"paste": "Why does it fail?\n```\n" + shellOutput(40_000),
	} {
		for _, share := range []float64{0.2, 0.4, 0.6} {
			for _, where := range []string{"last", "middle"} {
				s, m := newScript(), newMeter()
				for i := range 40 {
					s.call("bash", fmt.Sprintf(`{"command":"make part%d"}`, i), lines(80, fmt.Sprintf("part %d is built by gcc", i)))
				}
				words := text[:int(share*window*float64(len(text))/float64(m.Text("gpt-4o", text)))] + "\n```\nAnswer briefly."
				s.say("assistant", "Done.").say("user", words)
				if where == "middle" {
					s.call("bash", `{"command":"make"}`, "fine")
				}
				b := s.body(t)
				_, out := fitOnce(t, newTestFitter(t, Defaults(), nil), b, window, "", nil)
				if out == nil {
					t.Fatalf("%s of %.1f, %s: not fitted", kind, share, where)
				}
				if !strings.Contains(string(out.Body.Raw()), string(transcript.String(words))) {
					t.Errorf("%s of %.1f, %s: it has changed; %d tokens are left, %v", kind, share, where, out.After, out.Tiers)
				}
			}
		}
	}
}

// A person's own words are not taken for pasted text in any language.
func TestOwnWordsAreNoPaste(t *testing.T) {
	for lang, line := range map[string]string{
		"English": "Please never touch the vendor folder, and keep the old interface as it is.\n",
		"German":  "Bitte den Ordner vendor nie anfassen, die Schnittstelle muss bleiben, wie sie ist.\n",
		"Chinese": "请不要修改供应商目录，保持旧接口不变，并且只用标准库。\n",
		"Thai":    "กรุณาอย่าแก้ไขโฟลเดอร์ของผู้ขายและใช้เฉพาะไลบรารีมาตรฐาน\n",
		"Korean":  "벤더폴더는절대로수정하지말고기존인터페이스를유지해주세요\n",
		"mixed":   "请把 parser.go 里的错误改好，不要动 vendor 目录，测试要全部通过。\n",
	} {
		if list := findPastes(strings.Repeat(line, 100), false); len(list) > 0 {
			t.Errorf("%s: %v", lang, list)
		}
	}
	if list := findPastes(strings.Repeat("│ 0x12 │ 表 │ 12.5 │\n", 200), false); len(list) != 1 {
		t.Errorf("a table: %v", list)
	}
}

// A history is cut to about the target, not far below: with many middling results, several
// large ones, and a single one larger than the window.
func TestKeepsWhatFits(t *testing.T) {
	if testing.Short() {
		t.Skip("a generator of long histories")
	}
	for name, c := range map[string]struct{ steps, bytes int }{"many": {200, 1200}, "large": {12, 40_000}, "one": {1, 1_000_000}} {
		for _, share := range []float64{0.3, 0.6, 0.9} {
			for _, session := range []string{"", "s"} {
				s := newScript()
				for i := range c.steps {
					s.call("bash", fmt.Sprintf(`{"command":"make part%d"}`, i), fmt.Sprintf("part %d\n", i)+shellOutput(c.bytes))
				}
				b := s.body(t)
				f := newTestFitter(t, Defaults(), nil)
				window := int(float64(f.parts.Meter.Measure(b, "gpt-4o").Total) * share)
				_, out := fitOnce(t, f, b, window, session, nil)
				if out == nil {
					t.Fatalf("%s at %.1f is not fitted", name, share)
				}
				target := float64(window-outputReserve(b, window)) * Defaults().TargetShare
				if kept := float64(out.After) / target; kept > 1.01 || kept < 0.7 {
					t.Errorf("%s at %.1f, session %q: %.2f of the target is kept, %v", name, share, session, kept, out.Tiers)
				}
			}
		}
	}
}

// The same long text is a task in one conversation and a later message in another. Only the later message may be
// shortened, whichever of the two was met first.
func TestTaskAndLaterMessage(t *testing.T) {
	prose := strings.Repeat("The committee met again and went on about the roof of the old hall. ", 300)
	task := &script{}
	task.say("system", "You are an agent.").say("user", prose).call("bash", `{"command":"ls"}`, "Makefile")
	later := newScript()
	later.call("bash", `{"command":"ls"}`, "Makefile")
	later.say("user", prose).call("bash", `{"command":"make"}`, "fine")
	for _, taskFirst := range []bool{true, false} {
		cache := newParseCache()
		shortened := func(s *script, i int) bool {
			_, ok := newHistory(s.body(t), cache, []byte("k")).render(i, recipe{Op: opLong, Length: 4000})
			return ok
		}
		for n := range 2 {
			if first := n == 0; first == taskFirst {
				if shortened(task, 1) {
					t.Errorf("task first %v: the task is shortened", taskFirst)
				}
			} else if !shortened(later, 4) {
				t.Errorf("task first %v: the later message is not shortened", taskFirst)
			}
		}
	}
}

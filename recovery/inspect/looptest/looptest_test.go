package looptest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sample is enough for every scenario in several styles.
const sample = 300

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// text is the message's content, whatever its form.
func (m message) text() string {
	var s string
	var parts []struct{ Text string }
	if json.Unmarshal(m.Content, &s) != nil && json.Unmarshal(m.Content, &parts) == nil && len(parts) > 0 {
		s = parts[0].Text
	}
	return s
}

func read1(t *testing.T, body []byte) (raw []json.RawMessage, list []message) {
	t.Helper()
	var b struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, r := range b.Messages {
		var m message
		if err := json.Unmarshal(r, &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return b.Messages, list
}

func TestDeterminism(t *testing.T) {
	a, b, c := Cases(7, 60), Cases(7, 60), Cases(8, 60)
	different := 0
	for i := range a {
		if a[i].Name != b[i].Name || !slices.EqualFunc(a[i].Bodies, b[i].Bodies, bytes.Equal) || a[i].By != b[i].By {
			t.Errorf("%s: the same seed gave other bytes", a[i].Name)
		}
		if !bytes.Equal(a[i].Bodies[0], c[i].Bodies[0]) {
			different++
		}
	}
	if different < 55 {
		t.Errorf("another seed changed only %d of %d cases", different, len(a))
	}
	if one, two := RoundsAt(7, 33), RoundsAt(7, 33); one.Name != two.Name || !slices.EqualFunc(one.Bodies, two.Bodies, bytes.Equal) {
		t.Error("the same seed gave other bytes")
	}
	if one := At(7, 33); !slices.EqualFunc(one.Bodies, a[33].Bodies, bytes.Equal) {
		t.Error("At differs from Cases")
	}
}

// either takes turns between the two families of cases.
func either(seed uint64, i int) Case {
	if i%2 == 0 {
		return At(seed, i/2)
	}
	return RoundsAt(seed, i/2)
}

// Every body is what an API would accept, and begins with the one before.
func TestBodiesAreWellFormed(t *testing.T) {
	for i := range 2 * sample {
		c := either(1, i)
		raw, list := read1(t, c.Bodies[len(c.Bodies)-1])
		open := map[string]bool{}
		for k, m := range list {
			if m.Role != "tool" && len(open) > 0 || m.Role == "tool" && !open[m.ID] {
				t.Fatalf("%s: message %d: results do not answer the calls before them", c.Name, k)
			}
			delete(open, m.ID)
			for _, call := range m.ToolCalls {
				var args map[string]any
				if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil || call.Function.Name == "" {
					t.Fatalf("%s: %v in the call %+v", c.Name, err, call)
				}
				open[call.ID] = true
			}
		}
		if len(open) > 0 {
			t.Fatalf("%s: a call has no result", c.Name)
		}
		if i/2%8 > 1 { // reading all bodies takes long: only of a quarter
			continue
		}
		for k, before := 0, 0; k < len(c.Bodies); k++ {
			part, _ := read1(t, c.Bodies[k])
			if len(part) <= before || !slices.EqualFunc(part, raw[:len(part)], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("%s: body %d does not continue the one before", c.Name, k)
			}
			before = len(part)
			if list[before-1].Role == "assistant" || before < len(list) && list[before].Role != "assistant" {
				t.Fatalf("%s: body %d does not end where the model is asked", c.Name, k)
			}
		}
	}
}

// outcome is a call with its result; the call's arguments in canonical form.
type outcome struct{ call, result string }

var command = regexp.MustCompile("(?s)(?:```(?:bash)?|<command>)\n(.*)\n(?:```|</command>)$")

// outcomes reads a history as a detector would.
func outcomes(t *testing.T, body []byte) (out []outcome, said []string) {
	t.Helper()
	_, list := read1(t, body)
	for i, m := range list {
		if m.Role != "assistant" {
			continue
		}
		if found := command.FindStringSubmatch(m.text()); found != nil {
			out = append(out, outcome{found[1], list[i+1].text()})
			continue
		}
		if m.ToolCalls == nil {
			said = append(said, m.text())
		}
		for j, call := range m.ToolCalls {
			var args map[string]any
			if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
				t.Fatal(err)
			}
			canonical, _ := json.Marshal(args)
			out = append(out, outcome{call.Function.Name + string(canonical), list[i+1+j].text()})
		}
	}
	return out, said
}

var volatile = regexp.MustCompile(`/tmp/[^/ ]+|0x\w+|req_\w+|0xc000\w+|[\d:._TZ+-]+`)

func (o outcome) stable() outcome {
	return outcome{o.call, volatile.ReplaceAllString(o.result, "")}
}

// alike counts how often the history ends with the same group of n outcomes.
func alike(list []outcome, n int) (count int) {
	for len(list) >= n && slices.EqualFunc(list[len(list)-n:], lastOf(list, n, count), func(a, b outcome) bool { return a.stable() == b.stable() }) {
		if count++; len(list) < (count+1)*n {
			return count
		}
	}
	return count
}

// rising counts how many outcomes at the end differ in nothing but numbers.
func rising(list []outcome) (count int) {
	last := list[len(list)-1]
	same := func(o outcome) bool {
		return numbers.ReplaceAllString(o.call, "#") == numbers.ReplaceAllString(last.call, "#") &&
			numbers.ReplaceAllString(o.result, "#") == numbers.ReplaceAllString(last.result, "#")
	}
	for count < len(list) && same(list[len(list)-1-count]) {
		count++
	}
	return count
}

var numbers = regexp.MustCompile(`\d+(?:\.\d+)?`)

func lastOf(list []outcome, n, skip int) []outcome {
	return list[len(list)-n*(skip+1) : len(list)-n*skip]
}

// The labels say what is in the bodies, found here anew from the bytes.
func TestLabelsOfLoops(t *testing.T) {
	for i := range 2 * sample {
		c := either(2, i)
		if c.Kind == "" {
			if c.From != -1 || c.By != -1 || c.Until != -1 {
				t.Errorf("%s: a healthy case has an index", c.Name)
			}
			continue
		}
		if c.From < 1 || c.From >= c.By || c.By > c.Until || c.Until >= len(c.Bodies) {
			t.Fatalf("%s: From %d, By %d, Until %d of %d", c.Name, c.From, c.By, c.Until, len(c.Bodies))
		}
		for want, at := range map[int]int{2: c.From, 3: c.By} {
			done, said := outcomes(t, c.Bodies[at])
			got := want
			switch c.Kind {
			case SameError, SameResult:
				got = alike(done, 1)
			case Alternation:
				if got = alike(done, 2); alike(done, 1) > 1 {
					t.Errorf("%s: it does not alternate", c.Name)
				}
			case Cycle:
				n := 3
				if name, _, _ := strings.Cut(c.Name, "/"); name == "round_of_four" || name == "one_of_three" {
					n = 4
				}
				if got = alike(done, n); alike(done, 1) > 1 || alike(done, 2) > 1 {
					t.Errorf("%s: its calls are the same", c.Name)
				}
			case Counter:
				if got = rising(done) - 1; alike(done, 1) > 1 {
					t.Errorf("%s: it does not count", c.Name)
				}
			case Monologue:
				for k := range want {
					if core := strings.Fields(said[len(said)-1])[3:12]; !strings.Contains(said[len(said)-1-k], strings.Join(core[:4], " ")) {
						t.Errorf("%s: %q is not repeated", c.Name, core)
					}
				}
			case NoProgress:
				calls := map[string]bool{}
				for _, o := range done[len(done)-6*(want-1):] {
					calls[o.call] = true
				}
				if len(calls) != 6*(want-1) {
					t.Errorf("%s: only %d different calls", c.Name, len(calls))
				}
			}
			if got != want {
				t.Errorf("%s: body %d has the loop %d times, not %d", c.Name, at, got, want)
			}
		}
	}
}

// changing are scenarios in which no call gives the same result twice.
var changing = []string{"plain", "poll_progress", "poll_changed", "poll_clock", "reread_after_edit", "test_changing", "retry_once", "pagination", "writes_ok",
	"pages_differ", "offsets_differ", "poll_attempts", "poll_backoff", "files_by_number", "writes_by_number", "status_by_number", "few_misses"}

// Apart from the polls that say why they are healthy, no healthy session repeats
// a call with its result three times in a row, and many not at all.
func TestHealthyCasesDoNotRepeat(t *testing.T) {
	healthy := 0
	for i := range 2 * sample {
		c := either(3, i)
		if c.Kind != "" {
			continue
		}
		healthy++
		if c.Why == "" {
			t.Errorf("%s: it does not say why", c.Name)
		}
		name, _, _ := strings.Cut(c.Name, "/")
		if name == "poll_sleep" || strings.Contains(name, "parallel") {
			continue
		}
		done, _ := outcomes(t, c.Bodies[len(c.Bodies)-1])
		seen := map[outcome]bool{}
		for k, o := range done {
			if seen[o] && slices.Contains(changing, name) {
				t.Errorf("%s: %v twice", c.Name, o)
			}
			if k > 1 && o == done[k-1] && o == done[k-2] {
				t.Errorf("%s: %v three times", c.Name, o)
			}
			seen[o] = true
		}
	}
	if healthy < sample {
		t.Errorf("%d of %d cases are healthy", healthy, 2*sample)
	}
}

// Styles, kinds and scenarios all occur.
func TestVariety(t *testing.T) {
	marks := []string{"```", "<command>", "<returncode>", "Observation: ", "Wall time", `"tool_calls"`, `"tool_call_id":"call_0"`, `"toolu_01`,
		`[{"type":"text"`, `"messages": [`, `"messages":[`, `\u003c`, `"reasoning_content"`, `"content":null`, `"content":""`, `"role":"developer"`,
		`\"bash\",`, `"arguments":"{\n`, `"max_tokens"`}
	seen := map[string]int{}
	for i := range 2 * sample {
		c := either(4, i)
		name, _, _ := strings.Cut(c.Name, "/")
		seen[name]++
		seen["kind "+c.Kind]++
		last := c.Bodies[len(c.Bodies)-1]
		unspaced := bytes.ReplaceAll(last, []byte(`": `), []byte(`":`))
		for _, mark := range marks {
			if bytes.Contains(last, []byte(mark)) || bytes.Contains(unspaced, []byte(mark)) {
				seen[mark]++
			}
		}
	}
	for _, sc := range slices.Concat(planted, healthy, plantedRounds, healthyRounds) {
		if seen[sc.name] < 4 || seen["kind "+sc.kind] < 20 {
			t.Errorf("%s: %d cases, %d of its kind", sc.name, seen[sc.name], seen["kind "+sc.kind])
		}
	}
	for _, mark := range marks {
		if n := seen[mark]; n < 3 {
			t.Errorf("%s occurs in %d of %d cases", mark, n, sample)
		}
	}
}

package classify_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
)

// rowsFile names a corpus file outside testdata that TestRows measures.
var rowsFile = flag.String("rows", "", "file of corpus rows to measure; reports only")

// sample is one row of a corpus file.
type sample struct {
	ID      string            `json:"id"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
	Round   string            `json:"round"`
	Stream  bool              `json:"stream"`
	Class   string            `json:"class"`
	Also    []string          `json:"also"` // other acceptable classes
	Facts   map[string]any    `json:"facts"`
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (s sample) evidence() recovery.Evidence {
	ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: s.Status, Header: http.Header{}, Stream: s.Stream, Now: noon}
	for k, v := range s.Headers {
		ev.Header.Set(k, v)
	}
	if s.Stream {
		ev.Phase = recovery.PhaseStream
	}
	ev.Body = s.Body
	var text string
	if json.Unmarshal(s.Body, &text) == nil {
		ev.Body = []byte(text)
	}
	return ev
}

// load returns the rows of a round.
func load(t testing.TB, round string) []sample {
	t.Helper()
	var out []sample
	for _, s := range read(t, "testdata/errors.jsonl") {
		if s.Round == round {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no row is of the round %q", round)
	}
	return out
}

// read returns all rows of a file.
func read(t testing.TB, path string) []sample {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []sample
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var s sample
		if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v: %s", path, err, sc.Text())
		}
		out = append(out, s)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// score counts the results of a run over rows.
type score struct {
	rows, right    int
	also           int // another acceptable class
	facts, factsOK int
	extra          int
	harmful        []string
	wrong          []string
	factsWrong     []string
}

// harmful reports whether a confusion does damage: waiting on an exhausted quota,
// giving up on a rate limit, shortening a history that fits, or resending one that
// does not.
func harmful(want, got string) bool {
	quota, rate, context := string(recovery.QuotaExhausted), string(recovery.RateLimit), string(recovery.ContextLengthExceeded)
	return want == quota && got == rate || want == rate && got == quota ||
		got == context && want != context || want == context && got != context && got != string(recovery.Unknown)
}

func measure(tb *classify.Table, rows []sample) score {
	var sc score
	for _, s := range rows {
		d := tb.Classify(s.evidence())
		got := string(d.Spec.Class)
		sc.rows++
		switch {
		case got == s.Class:
			sc.right++
		case slices.Contains(s.Also, got):
			sc.also++
		default:
			sc.wrong = append(sc.wrong, fmt.Sprintf("%s: want %s, got %s by %s: %.300s", s.ID, s.Class, got, d.Rule, s.Body))
			if harmful(s.Class, got) {
				sc.harmful = append(sc.harmful, fmt.Sprintf("%s: want %s, got %s by %s", s.ID, s.Class, got, d.Rule))
			}
		}
		stated := tb.Stated(s.evidence())
		for name, want := range s.Facts {
			sc.facts++
			if sameFact(want, stated[name]) {
				sc.factsOK++
			} else {
				sc.factsWrong = append(sc.factsWrong, fmt.Sprintf("%s: %s: want %v, got %v: %.400s", s.ID, name, want, stated[name], s.Body))
			}
		}
		for name, got := range stated {
			if _, expected := s.Facts[name]; !expected {
				sc.extra++
				if *rowsFile != "" {
					sc.factsWrong = append(sc.factsWrong, fmt.Sprintf("%s: EXTRA %s = %v: %.400s", s.ID, name, got, s.Body))
				}
			}
		}
	}
	return sc
}

func sameFact(want, got any) bool {
	if w, ok := want.(float64); ok {
		switch g := got.(type) {
		case int:
			return w == float64(g)
		case int64:
			return w == float64(g)
		case float64:
			return math.Abs(w-g) < 0.01
		}
		return false
	}
	return fmt.Sprint(want) == fmt.Sprint(got)
}

func TestRows(t *testing.T) {
	if *rowsFile == "" {
		t.Skip("no -rows")
	}
	sc := measure(classify.New(configs.UpstreamRules), read(t, *rowsFile))
	fmt.Printf("class %d/%d = %.1f %%, %d more serve as well, facts %d/%d = %.1f %%, extra %d, harmful %d\n", sc.right, sc.rows, 100*float64(sc.right)/float64(sc.rows), sc.also,
		sc.factsOK, sc.facts, 100*float64(sc.factsOK)/float64(max(1, sc.facts)), sc.extra, len(sc.harmful))
	if testing.Verbose() {
		fmt.Println(strings.Join(sc.wrong, "\n"))
		fmt.Println("FACTS\n" + strings.Join(sc.factsWrong, "\n"))
	}
}

// TestCorpus checks the table against real answers of providers: every row of every round. A share below 1 allows for rows
// whose class or fact cannot be read from their bytes.
func TestCorpus(t *testing.T) {
	type share struct{ class, facts float64 }
	below := map[string]share{"first": {0.98, 1}, "more8": {0.96, 0.96}, "more9": {0.96, 1}, "blind3": {0.99, 1}, "blind5": {0.99, 1}, "blind8": {0.99, 1}}
	rounds := map[string][]sample{}
	for _, s := range read(t, "testdata/errors.jsonl") {
		rounds[s.Round] = append(rounds[s.Round], s)
	}
	tb := classify.New(configs.UpstreamRules)
	for round, rows := range rounds {
		want, ok := below[round]
		if !ok {
			want = share{1, 1}
		}
		sc := measure(tb, rows)
		if got := float64(sc.right+sc.also) / float64(sc.rows); got < want.class {
			t.Errorf("%s: %d of %d classes right, want %.0f %%:\n%s", round, sc.right, sc.rows, 100*want.class, strings.Join(sc.wrong, "\n"))
		}
		if got := float64(sc.factsOK) / float64(sc.facts); got < want.facts {
			t.Errorf("%s: %d of %d facts right, want %.0f %%:\n%s", round, sc.factsOK, sc.facts, 100*want.facts, strings.Join(sc.factsWrong, "\n"))
		}
		if len(sc.harmful) > 0 {
			t.Errorf("%s: harmful confusions:\n%s", round, strings.Join(sc.harmful, "\n"))
		}
	}
}

// TestWrapping: a gateway's envelope does not change the class of an error.
func TestWrapping(t *testing.T) {
	tb := classify.New(configs.UpstreamRules)
	quote := func(b []byte) string { q, _ := json.Marshal(string(b)); return string(q) }
	wrappers := map[string]func([]byte) string{
		"message string": func(b []byte) string { return `{"error":{"message":` + quote(b) + `,"code":400}}` },
		"message object": func(b []byte) string { return `{"object":"error","message":` + string(b) + `}` },
		"error string":   func(b []byte) string { return `{"error":` + quote(b) + `}` },
		"array":          func(b []byte) string { return `[` + string(b) + `]` },
		"openrouter raw": func(b []byte) string {
			return `{"error":{"message":"Provider returned error","metadata":{"raw":` + quote(b) + `,"provider_name":"x"}}}`
		},
		"litellm": func(b []byte) string {
			return `{"error":{"message":` + quote([]byte("litellm.BadRequestError: OpenAIException - "+string(b))) + `,"type":null,"param":null}}`
		},
		"detail":       func(b []byte) string { return `{"detail":` + quote(b) + `}` },
		"twice quoted": func(b []byte) string { return `{"error":{"message":` + quote([]byte(`{"error":`+quote(b)+`}`)) + `}}` },
		"plain prefix": func(b []byte) string { return "Error from provider: " + string(b) },
	}
	for _, s := range load(t, "first") {
		if s.Stream || len(s.Body) == 0 || s.Body[0] != '{' || s.Status >= 500 {
			continue
		}
		ev := s.evidence()
		want := tb.Classify(ev)
		if want.Spec.Class == recovery.Unknown || want.Spec.Class == recovery.InvalidRequest {
			continue
		}
		for name, wrap := range wrappers {
			ev.Body = []byte(wrap(s.Body))
			if got := tb.Classify(ev); got.Spec.Class != want.Spec.Class {
				t.Errorf("%s in %s: got %s by %s, want %s by %s", s.ID, name, got.Spec.Class, got.Rule, want.Spec.Class, want.Rule)
			}
		}
	}
}

package annotate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// TestNotesKeepThePrefix replays recorded sessions, request by request: what goes
// upstream with a note has the same bytes as the next request up to the end of the
// history, so that a provider's prompt cache holds. Requests for which there is nothing
// to say get a note, too; text protocols end with a user's own message.
func TestNotesKeepThePrefix(t *testing.T) {
	files, err := filepath.Glob("../inspect/testdata/trajectories/*.json")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	s, _ := stage(t, nil)
	judge := inspect.NewStage(inspect.Defaults(), toolRules, &recoverytest.Observer{})
	requests, notes := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rec struct {
			Tools    []json.RawMessage `json:"tools"`
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		body := func(n int) []byte {
			out, err := json.Marshal(map[string]any{"model": "m", "tools": rec.Tools, "messages": rec.Messages[:n]})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		for n := 2; n < len(rec.Messages); n++ {
			var next struct {
				Role string `json:"role"`
			}
			if json.Unmarshal(rec.Messages[n], &next) != nil || next.Role != "assistant" {
				continue
			}
			b := recoverytest.Parse(t, body(n), transcript.Chat)
			x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: b, Mode: recovery.ModeAct}}
			if err := judge.Prepare(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			requests++
			for i := range x.Results {
				x.Results[i].Confidence = 1
			}
			note, _ := s.Note(x)
			if note != "" {
				notes++
			} else {
				note = "[gateway note, not from the user] Where there is none, one could be."
			}
			out, err := b.Edit().AppendNote(note).Apply()
			if err != nil {
				t.Fatal(err)
			}
			later := body(n + 1)
			last := b.Messages()[n-1]
			end := last.End
			if last.Role == transcript.RoleUser {
				end -= 3 // its closing quote, and brackets: the note stands behind its text
			}
			if same := common(out, later); same < end {
				t.Errorf("%s, request %d: the next request shares %d bytes, of a history of %d", filepath.Base(file), n, same, last.End)
			}
		}
	}
	if requests < 200 || notes < 2 {
		t.Errorf("only %d requests, %d notes", requests, notes)
	}
	t.Logf("%d sessions, %d requests, %d notes", len(files), requests, notes)
}

// common is how many bytes two texts begin with alike.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

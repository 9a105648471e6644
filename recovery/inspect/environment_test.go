package inspect

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Failures of many kinds at once are the environment's; of few kinds, between
// successes, or of the model's own making they are not.
func TestEnvironment(t *testing.T) {
	const (
		denied  = "\n! bash {\"command\":\"echo x > /etc/a\"}\n= bash: /etc/a: Permission denied\\n\\nCommand exited with code 1"
		full    = "\n! bash {\"command\":\"cp a b\"}\n= cp: error writing 'b': No space left on device\\n\\nCommand exited with code 1"
		absent  = "\n! bash {\"command\":\"cat q\"}\n= cat: q: No such file or directory\\n\\nCommand exited with code 1"
		slow    = "\n! bash {\"command\":\"make\"}\n= Command timed out after 120 seconds"
		invalid = "\n! edit {\"path\":\"a\"}\n= MCP error -32602: Input validation error: Invalid arguments for tool edit: Required at \\\"old_text\\\""
	)
	for _, c := range []struct {
		name, text, want string
	}{
		{"one", notFound, "[]"},
		{"the same often", times(6, notFound), "[]"},
		{"two kinds", notFound + denied + notFound + denied, "[]"},
		{"three kinds", notFound + denied + full, "[disk_full permission_denied command_not_found]"},
		{"three kinds and a success", notFound + denied + listing + full, "[disk_full permission_denied command_not_found]"},
		{"three kinds among successes", notFound + listing + denied + listing + full, "[]"},
		{"the last one succeeded", notFound + denied + full + listing, "[]"},
		{"the model's own mistakes", notFound + denied + invalid, "[]"},
		{"a command that takes long", notFound + denied + slow, "[]"},
		{"long ago", notFound + denied + times(5, absent), "[]"},
		{"a person spoke", notFound + denied + "\n> I mended that" + full, "[]"},
	} {
		x := prepared(t, NewStage(Defaults(), RulesForTests(), quiet{}), &recovery.Exchange{Request: recovery.Request{Body: script(t, c.text), Mode: recovery.ModeAct}})
		if got := fmt.Sprint(x.Failing); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// In recorded sessions of agents at work the environment was never broken.
func TestEnvironmentsAreWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/trajectories/*.json")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	failing := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rec struct {
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		for n := 2; n <= len(rec.Messages); n++ {
			body, _ := json.Marshal(map[string]any{"messages": rec.Messages[:n]})
			b := recoverytest.Parse(t, body, transcript.Chat)
			x := prepared(t, NewStage(Defaults(), RulesForTests(), quiet{}), &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}})
			if x.Turn.Failure != nil {
				failing++
			}
			if x.Failing != nil {
				t.Errorf("%s, message %d: %v", filepath.Base(file), n, x.Failing)
			}
		}
	}
	if failing < 20 {
		t.Errorf("only %d requests ended in failures", failing)
	}
	t.Logf("%d requests ended in failures", failing)
}

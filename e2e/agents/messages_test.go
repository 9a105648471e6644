package agents

import (
	"encoding/json"
	"strings"
	"testing"
)

// A message is made from the same replies, and requests are held to the rules.
func TestMessagesModel(t *testing.T) {
	m, err := NewModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	m.Add("m", func(q *Request) Reply {
		switch {
		case q.Turns() > 0:
			return done("%d turns, %q", q.Turns(), q.Messages[len(q.Messages)-1].Text)
		case q.N == 2:
			return overflow(q)
		}
		return Reply{Text: "Now.", Calls: []Call{plan(q), q.run("ls")}, Cut: 0.5 * float64(min(q.N, 1)), Clean: true}
	})
	ask := func(request string) string {
		t.Helper()
		return post(t, m.URL()+"/messages", `{"model":"m","max_tokens":9,"tools":[{"name":"bash"}],`+request+`}`)
	}
	const question = `{"role":"user","content":"go"}`
	var made struct {
		Content    json.RawMessage
		StopReason string `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(ask(`"messages":[`+question+`]`)), &made); err != nil || made.StopReason != "tool_use" || strings.Count(string(made.Content), `"type"`) != 4 {
		t.Fatalf("%v, %s: %s", err, made.StopReason, made.Content)
	}
	if cut := ask(`"stream":true,"messages":[` + question + `]`); strings.Contains(cut, "message_stop") || !strings.Contains(cut, "signature_delta") {
		t.Errorf("not cut: %s", cut)
	}
	if got := ask(`"messages":[` + question + `]`); !strings.Contains(got, `"prompt is too long: `) || !strings.Contains(got, `"type":"error"`) {
		t.Errorf("not refused: %s", got)
	}
	results := func(n int) (blocks string) {
		for _, c := range m.Records("m")[0].Reply.Calls[:n] {
			blocks += `{"type":"tool_result","tool_use_id":"` + c.ID + `","content":"well"},`
		}
		return blocks
	}
	for name, tt := range map[string]struct{ behind, want string }{
		"next turn":  {results(2) + `{"type":"text","text":"and"}`, `1 turns, \"and\"`},
		"no result":  {results(1) + `{"type":"text","text":"and"}`, "were found without `tool_result` blocks"},
		"text first": {`{"type":"text","text":"and"},` + strings.TrimSuffix(results(2), ","), "were found without `tool_result` blocks"},
	} {
		if got := ask(`"messages":[` + question + `,{"role":"assistant","content":` + string(made.Content) + `},{"role":"user","content":[` + tt.behind + `]}]`); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	broken := 0
	for _, r := range m.Records("m") {
		if r.Broken {
			broken++
		} else if err := r.Request.unpaired(); err != nil {
			t.Error(err)
		}
	}
	if broken != 2 || ruled(&Evidence{Model: m.Records("m")}) == nil {
		t.Errorf("%d requests are recorded as broken", broken)
	}
}

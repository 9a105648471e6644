package repair

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// answerCase is a case of testdata/malformed/answers.jsonl: a complete answer.
type answerCase struct {
	ID           string          `json:"id"`
	Toolset      string          `json:"toolset"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	FinishReason string          `json:"finish_reason"`
	Message      struct {
		Content   *string `json:"content"`
		Reasoning string  `json:"reasoning_content"`
		Calls     []struct {
			ID       string     `json:"id"`
			Kind     string     `json:"type"`
			Function corpusCall `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Expect      string       `json:"expect"`
	Want        []corpusCall `json:"want"`
	WantIDs     string       `json:"want_ids"`
	WantContent *string      `json:"want_content"`
}

// decidedElsewhere lists the cases whose expectation does not apply to Mend alone, with the reason.
var decidedElsewhere = map[string]string{
	"reason-01":    "Mend corrects a finish reason that contradicts the calls: some agents stop at it",
	"reasoning-01": "the gate treats empty answers as failures of the attempt",
	"empty-01":     "the same",
}

func TestMalformedAnswers(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "malformed", "answers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sets := toolsets(t)
	m, right, all := mender(), 0, 0
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var a answerCase
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		more := `,"tools":` + string(sets[a.Toolset])
		if len(a.ToolChoice) > 0 {
			more += `,"tool_choice":` + string(a.ToolChoice)
		}
		d := recovery.Draft{Finish: finish(a.FinishReason), Unsaid: a.Message.Reasoning != "" && a.Message.Content == nil && len(a.Message.Calls) == 0}
		if a.Message.Content != nil {
			d.Text = *a.Message.Content
		}
		for _, c := range a.Message.Calls {
			d.Calls = append(d.Calls, recovery.DraftCall{ID: c.ID, Kind: c.Kind, Name: c.Function.Name, Arguments: c.Function.text()})
		}
		v := m.Mend(request(t, more), d)
		if decidedElsewhere[a.ID] != "" {
			continue
		}
		all++
		if problem := a.check(t, d, v); problem != "" {
			t.Logf("%s expects %s: %s (%+v %+v)", a.ID, a.Expect, problem, v, v.Flaw)
			if v.Judgement == recovery.JudgeReplace {
				t.Errorf("%s has a wrong repair", a.ID)
			}
			continue
		}
		right++
	}
	t.Logf("%d of %d answers", right, all)
	if right < all {
		t.Errorf("%d of %d answers are judged correctly", right, all)
	}
}

func (a answerCase) check(t *testing.T, d recovery.Draft, v recovery.Verdict) string {
	t.Helper()
	want := map[string]recovery.Judgement{"pass": recovery.JudgePass, "mend": recovery.JudgeReplace, "ask": recovery.JudgeAsk}[a.Expect]
	if v.Judgement != want {
		return "another judgement"
	}
	if want != recovery.JudgeReplace {
		return ""
	}
	if a.Want != nil && len(a.Want) != len(v.Calls) {
		return "another number of calls"
	}
	for i, w := range a.Want {
		if v.Calls[i].Name != w.Name || !sameJSON(t, []byte(v.Calls[i].Arguments), []byte(w.text())) {
			return "another call"
		}
	}
	if a.WantIDs == "unique" {
		seen := map[string]bool{}
		for i, c := range v.Calls {
			if c.ID == "" || seen[c.ID] {
				return "ids are not unique"
			}
			seen[c.ID] = true
			if old := d.Calls[i].ID; i == 0 && old != "" && c.ID != old {
				return "a good id was changed"
			}
		}
	}
	if a.WantContent != nil {
		text := d.Text
		if v.Text != nil {
			text = *v.Text
		}
		if strings.TrimSpace(text) != strings.TrimSpace(*a.WantContent) {
			return "another text"
		}
	}
	return ""
}

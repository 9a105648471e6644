package fit_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/fit"
)

// Of the recorded errors, exactly the overflows that state a plausible window prove one.
func TestLimitsOfRecordedErrors(t *testing.T) {
	f, err := os.Open("../classify/testdata/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table := classify.New(configs.UpstreamRules)
	proved, overflows := 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct {
			Round  string          `json:"round"`
			ID     string          `json:"id"`
			Status int             `json:"status"`
			Body   json.RawMessage `json:"body"`
			Stream bool            `json:"stream"`
			Class  recovery.Class  `json:"class"`
			Facts  struct {
				Limit int `json:"limit_tokens"`
			} `json:"facts"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Round != "first" {
			continue
		}
		body := []byte(row.Body)
		if text := ""; json.Unmarshal(row.Body, &text) == nil {
			body = []byte(text)
		}
		ev := recovery.Evidence{Phase: recovery.PhaseStatus, Status: row.Status, Header: http.Header{}, Body: body, Stream: row.Stream}
		failure := &recovery.Failure{Diagnosis: table.Classify(ev)}
		limit, ok := fit.LimitFrom(failure)
		switch {
		case row.Class != recovery.ContextLengthExceeded && ok:
			t.Errorf("%s: %s proves a window of %d", row.ID, row.Class, limit)
		case row.Class == recovery.ContextLengthExceeded:
			if overflows++; ok {
				proved++
			}
			if ok && row.Facts.Limit > 0 && limit != row.Facts.Limit {
				t.Errorf("%s: a window of %d, stated %d", row.ID, limit, row.Facts.Limit)
			}
			if !ok && row.Facts.Limit >= 256 {
				t.Errorf("%s: the limit of %d is not believed", row.ID, row.Facts.Limit)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d overflows prove a window", proved, overflows)
	if overflows < 20 || proved*2 < overflows {
		t.Errorf("%d of %d overflows prove a window", proved, overflows)
	}
}

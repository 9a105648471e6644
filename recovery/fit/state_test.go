package fit_test

import (
	"context"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// What is on a server cannot be made smaller here.
func TestStateFits(t *testing.T) {
	f := fit.New(fit.Defaults(), fit.Parts{Meter: fit.NewMeter(fit.Offline(), fit.MeterConfig{}), Windows: fit.NewWindows()})
	defer func() { _ = f.Close(context.Background()) }()
	for raw, fits := range map[string]bool{
		`{"input":"x"}`: true,
		`{"input":[{"type":"item_reference","id":"msg_1"},{"role":"user","content":"x"}]}`:        true,
		`{"input":"x","previous_response_id":"resp_1"}`:                                           false,
		`{"input":"x","conversation":"conv_1"}`:                                                   false,
		`{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`:                 false,
		`{"input":[{"type":"compaction","encrypted_content":"x"},{"role":"user","content":"x"}]}`: true,
	} {
		b, err := transcript.Parse([]byte(raw), transcript.Responses, transcript.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		x := &recovery.Exchange{Body: b, Mode: recovery.ModeAct, Candidates: []recovery.Choice{{}}}
		if err := f.Prepare(context.Background(), x); err != nil || (x.Fitting != nil) != fits {
			t.Errorf("%s: fitting %v, %v", raw, x.Fitting, err)
		}
	}
}

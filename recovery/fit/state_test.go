package fit_test

import (
	"context"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/fit/count"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Only a request that carries its own history can be fitted, not one with state on the server.
func TestStateFits(t *testing.T) {
	f := fit.New(fit.Defaults(), fit.Parts{Meter: count.NewMeter(), Windows: fit.NewWindows()})
	defer func() { _ = f.Close(context.Background()) }()
	const said = `{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}`
	for raw, fits := range map[string]bool{
		`{"input":[` + said + `]}`:                                               true,
		`{"input":"x","instructions":"y"}`:                                       true,
		`{"input":[{"type":"item_reference","id":"msg_1"},` + said + `]}`:        true,
		`{"input":[{"type":"compaction","encrypted_content":"x"},` + said + `]}`: true,
		`{"input":[` + said + `],"previous_response_id":"resp_1"}`:               false,
		`{"input":[` + said + `],"conversation":"conv_1"}`:                       false,
		`{"input":[` + said + `,{"type":"compaction_trigger"}]}`:                 false,
	} {
		b := recoverytest.Parse(t, raw, transcript.Responses)
		x := &recovery.Exchange{Request: recovery.Request{Body: b, Mode: recovery.ModeAct}, Candidates: []recovery.Choice{{}}}
		if err := f.Prepare(context.Background(), x); err != nil || (x.Fitting != nil) != fits {
			t.Errorf("%s: fitting %v, %v", raw, x.Fitting, err)
		}
	}
}

package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/tidwall/gjson"
)

// brain is a planner whose plan is full of hostile text.
func brain(t *testing.T, tool string) (url string) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		plan := fmt.Sprintf(`{"strategy":"parameter-adjustment","reasoning":%q,"action":{"toolName":%q,"parameters":{"account":%q},"escalationMessage":%q},"expectedOutcome":"the entries","confidence":0.6,`+
			`"progress":{"percent":40,"blockers":["the number"],"nextMilestone":"read them"}}`, "It is the ref. "+hostile, tool, hostile, "Which account? "+hostile)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"brain","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, plan)
	}))
	t.Cleanup(up.Close)
	return fmt.Sprintf("brain: {url: %q, profile: hosted}", up.URL+"/v1")
}

// planning is the configuration under which its plans wait for a person.
const planning = "planner: {upstream: brain, model: brain, mode: act, approvals: true}\n"

// waiting are the plans that wait, or did.
func (g *gateway) waiting() []gjson.Result { return g.told("approvals").Get("approvals").Array() }

// stick has an agent fail at a tool until a plan for it waits.
func (g *gateway) stick(model, tool string) {
	history := `{"role":"user","content":"What are the entries?"}`
	for i := 0; len(g.waiting()) == 0; i++ {
		if i == 8 {
			g.t.Fatalf("no plan waits: %s", g.told("events/history?last=100"))
		}
		history += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":%q,"arguments":"{\"account\":\"Ada\"}"}}]},`+
			`{"role":"tool","tool_call_id":"c%d","content":"{\"error\":\"ledger said: E41 unacceptable\"}"}`, i, tool, i)
		g.ask(fmt.Sprintf(`{"model":%q,"messages":[%s],"tools":[{"type":"function","function":{"name":%q,"parameters":{"type":"object","properties":{"account":{"type":"string"}}}}}]}`, model, history, tool))
		for end := time.Now().Add(2 * time.Second); i > 0 && len(g.waiting()) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // it is made off the client's sight
		}
	}
}

// A plan for an agent that is stuck waits for a person, who decides with a click. What
// the planner wrote is text, whatever it is.
func TestApprove(t *testing.T) {
	g, b := start(t, planning+"breaker: {failures: 20}\n", brain(t, "ledger")), open(t)
	g.stick("m", "ledger")
	b.do(chromedp.Navigate(g.url + "/rebound/"))
	b.await("that something waits", "document.querySelector('nav a[data-view=sessions]').dataset.waiting === '1'")
	b.do(chromedp.KeyEvent("2"))
	b.await("the plan", "[...document.querySelectorAll('button')].some((x) => x.textContent === 'Approve')")
	if got := eval[string](b, "document.querySelector('pre.plan').textContent"); gjson.Get(got, "account").Str != hostile {
		t.Errorf("the parameters are shown as %s", got)
	}
	_ = eval[any](b, "[...document.querySelectorAll('button')].find((x) => x.textContent === 'Approve').click()")
	b.await("that it is approved", "[...document.querySelectorAll('main .chip')].some((x) => x.textContent === 'approved')")
	if list := g.waiting(); len(list) != 1 || list[0].Get("state").Str != "approved" {
		t.Errorf("the gateway has %v", list)
	}
	b.nothingRan()
}

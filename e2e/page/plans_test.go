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

// A plan for an agent that is stuck waits for a person, who decides with a click. What
// the planner wrote is text, whatever it is.
func TestApprove(t *testing.T) {
	brain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		plan := fmt.Sprintf(`{"strategy":"parameter-adjustment","reasoning":%q,"action":{"toolName":"ledger","parameters":{"account":%q}},"expectedOutcome":"the entries","confidence":0.6,`+
			`"progress":{"percent":40,"blockers":["the number"],"nextMilestone":"read them"}}`, "It is the ref. "+hostile, hostile)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"brain","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, plan)
	}))
	t.Cleanup(brain.Close)
	g, b := start(t, "planner: {upstream: brain, model: brain, mode: act, approvals: true}\nbreaker: {failures: 20}\n", fmt.Sprintf("brain: {url: %q, profile: hosted}", brain.URL+"/v1")), open(t)
	history := `{"role":"user","content":"What are the entries?"}`
	waiting := func() []gjson.Result { return g.told("approvals").Get("approvals").Array() }
	for i := 0; len(waiting()) == 0; i++ {
		if i == 8 {
			t.Fatalf("no plan waits: %s", g.told("events/history?last=100"))
		}
		history += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"ledger","arguments":"{\"account\":\"Ada\"}"}}]},`+
			`{"role":"tool","tool_call_id":"c%d","content":"{\"error\":\"ledger said: E41 unacceptable\"}"}`, i, i)
		g.ask(fmt.Sprintf(`{"model":"m","messages":[%s],"tools":[{"type":"function","function":{"name":"ledger","parameters":{"type":"object","properties":{"account":{"type":"string"}}}}}]}`, history))
		for end := time.Now().Add(2 * time.Second); i > 0 && len(waiting()) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // it is made off the client's sight
		}
	}
	b.do(chromedp.Navigate(g.url + "/rebound/"))
	b.await("that something waits", "document.querySelector('nav a[data-view=sessions]').dataset.waiting === '1'")
	b.do(chromedp.KeyEvent("2"))
	b.await("the plan", "[...document.querySelectorAll('button')].some((x) => x.textContent === 'Approve')")
	if got := eval[string](b, "document.querySelector('pre.plan').textContent"); gjson.Get(got, "account").Str != hostile {
		t.Errorf("the parameters are shown as %s", got)
	}
	_ = eval[any](b, "[...document.querySelectorAll('button')].find((x) => x.textContent === 'Approve').click()")
	b.await("that it is approved", "[...document.querySelectorAll('main .chip')].some((x) => x.textContent === 'approved')")
	if list := waiting(); len(list) != 1 || list[0].Get("state").Str != "approved" {
		t.Errorf("the gateway has %v", list)
	}
	b.nothingRan()
}

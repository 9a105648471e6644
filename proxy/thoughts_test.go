package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// demanding is a provider whose model thinks before it calls, and that refuses calls in the history
// without what it thought: one that is empty, too.
type demanding struct {
	mu      sync.Mutex
	refusal string
	thinks  map[string][]string // by credential: what the calls of each request had
	asked   map[string]int
}

func (d *demanding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	who := r.Header.Get("Authorization")
	d.asked[who]++
	var had []string
	for _, m := range gjson.GetBytes(body, "messages").Array() {
		if m.Get("tool_calls").Exists() {
			had = append(had, m.Get("reasoning_content").Str)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if slices.Contains(had, "") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, d.refusal)
		return
	}
	d.thinks[who] = had
	n := strconv.Itoa(len(had))
	thought, call := `"reasoning_content":"Thought `+n+` of `+who+`"`, `"tool_calls":[{"index":0,"id":"ls:`+n+`","type":"function","function":{"name":"ls","arguments":"{\"path\": \"`+n+`\", \"n\": 12345678901234567890}"}}]`
	if !gjson.GetBytes(body, "stream").Bool() {
		fmt.Fprint(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,`+thought+`,`+call+`},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, delta := range []string{`"role":"assistant",` + thought, call} {
		fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{`+delta+`}}]}`+"\n\n")
	}
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
}

// TestThoughtsAreGivenBack: a provider that refuses an empty reasoning_content gets what its own answers had,
// for the client that got them and nobody else; and a blank where nobody knows.
func TestThoughtsAreGivenBack(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"deepseek": `{"error":{"message":"The reasoning content in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
		"kimi":     `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2","type":"invalid_request_error"}}`,
		"mimo":     `{"error":{"code":"400","message":"Param Incorrect","param":"The reasoning_content in the thinking mode must be passed back to the API.","type":""}}`,
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, streamed %v", name, stream), func(t *testing.T) {
				t.Parallel()
				d := &demanding{refusal: refusal, thinks: map[string][]string{}, asked: map[string]int{}}
				up := httptest.NewServer(d)
				defer up.Close()
				g := startCalm(t, up.URL, "planner: {upstream: \"\"}")
				session := func(credential string, turns int) (messages string) {
					messages = `{"role":"user","content":"List ` + credential + `."}`
					for n := range turns {
						status, answer := g.do("POST", "/v1/chat/completions", credential,
							fmt.Sprintf(`{"model":"m","stream":%v,"tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object"}}}],"messages":[%s]}`, stream, messages))
						if status != 200 || !strings.Contains(answer, "ls:"+strconv.Itoa(n)) {
							t.Fatalf("turn %d: %d %s", n, status, answer)
						}
						// As a client that knows nothing of reasoning, and writes arguments its own way.
						messages += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":"ls:%[1]d","type":"function","function":{"name":"ls","arguments":"{\"n\":12345678901234567890,\"path\":\"%[1]d\"}"}}]},{"role":"tool","tool_call_id":"ls:%[1]d","content":"a%[1]d"}`, n)
					}
					return messages
				}
				session("sk-one", 4)
				one := d.thinks["Bearer sk-one"]
				want := []string{" ", "Thought 1 of Bearer sk-one", "Thought 2 of Bearer sk-one"} // the first was not known to be needed
				if !slices.Equal(one, want) {
					t.Errorf("it got back %q", one)
				}
				if d.asked["Bearer sk-one"] != 6 { // refused bare, and refused empty, once each
					t.Errorf("%d requests", d.asked["Bearer sk-one"])
				}
				session("sk-two", 3)
				if two := d.thinks["Bearer sk-two"]; !slices.Equal(two, []string{"Thought 0 of Bearer sk-two", "Thought 1 of Bearer sk-two"}) || d.asked["Bearer sk-two"] != 3 {
					t.Errorf("another client's session got back %q after %d requests", two, d.asked["Bearer sk-two"])
				}
				if status, answer := g.do("POST", "/v1/chat/completions", "sk-three", `{"model":"m","messages":[`+session("sk-two", 2)+`]}`); status != 200 {
					t.Errorf("another client with the same history: %d %s", status, answer)
				}
				if three := d.thinks["Bearer sk-three"]; !slices.Equal(three, []string{" ", " "}) {
					t.Errorf("another client with the same history got %q", three)
				}
			})
		}
	}
}

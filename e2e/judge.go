package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// The judge is LLMock, a scripted upstream by other people: it plays faults and
// says of each call what its client, here the gateway, did wrong. Every case has
// a judge and a gateway of its own, since a verdict is about all that a judge saw.
// The gateway knows nothing but the judge's address: all else is its defaults.

// judgement is one case of the judge.
type judgement struct {
	Name   string
	Script []map[string]any // behaviours, as LLMock names them
	Seed   int              // of the request; without one an answer is sampled
	Tools  bool
	Modes  []Mode // nil: both
	Honest bool   // nothing helps: the client gets the error
}

// modelText is what the model says in every case.
const modelText = "The first harbour was built of timber, the second of stone. When the river moved its bed, both fell dry, and the town followed the water to the east."

func fault(kind string, more ...any) map[string]any {
	b := map[string]any{"type": kind}
	for i := 0; i+1 < len(more); i += 2 {
		b[more[i].(string)] = more[i+1]
	}
	return b
}

var streamedOnly = []Mode{Streamed}

// judgements are all cases of the judge.
var judgements = []judgement{
	{Name: "no-fault"},
	{Name: "500-twice", Script: []map[string]any{fault("fail", "status", 500, "times", 2)}},
	{Name: "502-once", Script: []map[string]any{fault("fail", "status", 502)}},
	{Name: "503-hint-1", Script: []map[string]any{fault("fail", "status", 503, "retry_after", 1, "times", 2)}},
	{Name: "503-hint-8", Script: []map[string]any{fault("fail", "status", 503, "retry_after", 8)}},
	{Name: "529-hint-3", Script: []map[string]any{fault("fail", "status", 529, "retry_after", 3)}},
	{Name: "429-hint-2", Script: []map[string]any{fault("fail", "status", 429, "retry_after", 2, "times", 3)}},
	{Name: "429-no-hint", Script: []map[string]any{fault("fail", "status", 429, "times", 2)}},
	{Name: "503-for-ever", Script: []map[string]any{fault("fail", "status", 503, "times", nil)}, Honest: true},
	{Name: "400", Script: []map[string]any{fault("fail", "status", 400)}, Honest: true},
	{Name: "401", Script: []map[string]any{fault("fail", "status", 401)}, Honest: true},
	{Name: "403", Script: []map[string]any{fault("fail", "status", 403)}, Honest: true},
	{Name: "404", Script: []map[string]any{fault("fail", "status", 404)}, Honest: true},
	{Name: "422", Script: []map[string]any{fault("fail", "status", 422)}, Honest: true},
	{Name: "slow-40", Script: []map[string]any{fault("slow_first_token", "seconds", 40)}, Modes: streamedOnly},
	{Name: "truncated-at-once", Script: []map[string]any{fault("stream_fault", "kind", "truncate", "after_chunks", 0)}, Modes: streamedOnly},
	// After text was sent only a repetition of the same request is the same call
	// for the judge, so the model must not sample.
	{Name: "truncated", Script: []map[string]any{fault("stream_fault", "kind", "truncate", "after_chunks", 3)}, Seed: 7, Modes: streamedOnly},
	{Name: "disconnected", Script: []map[string]any{fault("stream_fault", "kind", "disconnect", "after_chunks", 3)}, Seed: 7, Modes: streamedOnly},
	{Name: "malformed", Script: []map[string]any{fault("stream_fault", "kind", "malformed", "after_chunks", 3)}, Seed: 7, Modes: streamedOnly},
	{Name: "stalled", Script: []map[string]any{fault("stream_fault", "kind", "stall", "after_chunks", 3, "stall_seconds", 70)}, Seed: 7, Modes: streamedOnly},
	{Name: "bad-arguments", Script: []map[string]any{fault("tool_fault", "kind", "malformed_arguments")}, Tools: true},
	{Name: "unknown-tool", Script: []map[string]any{fault("tool_fault", "kind", "unknown_tool")}, Tools: true},
}

// judgeClient is the folder of its pins.
const judgeClient = "judge"

// judgesAtOnce bounds how many cases run side by side: each is two programs.
const judgesAtOnce = 4

// isJudgeClient reports whether a client is one whose gateway is judged: the plain ones, one a format.
func isJudgeClient(client string) bool {
	return client == plain || client == plainResponses || client == plainMessages
}

// runJudge runs all judgements and returns how many held.
func (o *options) runJudge(binary string, report *bytes.Buffer) (passed, failed int) {
	type row struct {
		j      judgement
		mode   Mode
		client string
	}
	var rows []row
	var names []string
	for _, j := range o.judgements {
		for _, m := range o.modes {
			for _, c := range o.clients {
				if (j.Modes == nil || j.Modes[0] == m) && isJudgeClient(c) {
					rows, names = append(rows, row{j, m, c}), append(names, j.Name)
				}
			}
		}
	}
	fmt.Printf("the judge: %d runs\n", len(rows))
	p := newProgress(os.Stdout, names)
	fmt.Fprintf(report, "## The judge\n\n| case | | | through the gateway | verdict |\n|---|---|---|---|---|\n")
	var all sync.WaitGroup
	var mu sync.Mutex
	places := make(chan struct{}, judgesAtOnce)
	for _, r := range rows {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			got, verdict, err := o.judge(binary, r.j, r.mode, r.client)
			e := ended{name: r.j.Name, who: fmt.Sprintf("judge %s %s", r.client, r.mode), through: got}
			if err != nil {
				e.failures = []string{err.Error()}
			}
			mu.Lock()
			defer mu.Unlock()
			p.done(e)
			fmt.Fprintf(report, "| %s | %s | %s | %s | %s |\n", r.j.Name, formatOf(r.client), r.mode, got, verdict)
		})
	}
	all.Wait()
	report.WriteString("\n")
	return p.passed, p.failed
}

// judge runs one case: the judge, a gateway before it, a request, the verdict.
func (o *options) judge(binary string, j judgement, mode Mode, client string) (got, verdict string, err error) {
	name := fmt.Sprintf("judge-%s-%s-%s", j.Name, client, mode)
	upstream, stop, err := startJudge(o.tree, name)
	if err != nil {
		return "", "", err
	}
	defer stop()
	script := j.behaviours(formatOf(client))
	if !j.Tools {
		script = append(script, fault("reply", "text", modelText, "times", nil))
	}
	listen, err := upstreamtest.FreeAddr()
	if err != nil {
		return "", "", err
	}
	config := fmt.Sprintf("listen: %s\nupstreams: {default: {url: %q}, messages: {url: %q, format: anthropic}}\n", listen, upstream+"/v1", upstream+"/anthropic")
	g, err := startGateway(o.tree, binary, name, listen, config)
	if err != nil {
		return "", "", err
	}
	c := Call{BaseURL: g.URL + "/v1", APIKey: ClientKey, Model: "gpt-4o", Stream: mode == Streamed, Seed: j.Seed,
		Messages: []Message{{Role: "user", Content: "Tell me of the harbour."}}, GiveUpMS: throughLimit.Milliseconds()}
	if j.Tools {
		c.Tools = []Tool{{Name: "get_weather", Description: "The weather of a city.", Parameters: map[string]any{
			"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}}}
	}
	if stored := false; formatOf(client) == Responses {
		c.Store = &stored
	}
	// The gateway reads its rules at the first failure, which takes half a second where much runs
	// beside it, and the verdict would take that for a part of the first wait: it has failed once before.
	first := c
	first.Messages = []Message{{Role: "user", Content: "Hello."}}
	var a Answer
	for _, play := range []struct {
		script []map[string]any
		call   *Call
	}{{[]map[string]any{fault("fail", "status", 500)}, &first}, {script, &c}} {
		_, err = ask(http.MethodPost, upstream+"/_llmock/reset", nil)
		if err == nil {
			err = post(upstream+"/_llmock/scenario", map[string]any{"behaviors": play.script})
		}
		if err == nil {
			a, err = newPlainClient(client).Do(*play.call)
		}
		if err != nil {
			return "", "", errors.Join(err, g.Stop())
		}
	}
	err = g.Stop()
	if err != nil {
		return "", "", err
	}
	got, err = j.check(&a)
	said, verr := ask(http.MethodGet, upstream+"/_llmock/verdict", nil)
	if verr != nil {
		return got, "", errors.Join(err, verr)
	}
	var v struct {
		Attempts int
		Findings []struct{ Severity, Code, Title string }
	}
	if verr := json.Unmarshal(said, &v); verr != nil {
		return got, "", errors.Join(err, verr)
	}
	verdict = fmt.Sprintf("no finding, %d attempts", v.Attempts)
	for _, f := range v.Findings {
		if f.Code == "malformed_chunk_ignored" {
			if again, aerr := askedAgain(upstream); again {
				continue
			} else if aerr != nil {
				err = errors.Join(err, aerr)
			}
		}
		verdict = f.Code
		err = errors.Join(err, fmt.Errorf("the judge: %s %s: %s", f.Severity, f.Code, f.Title))
	}
	if v.Attempts == 0 {
		err = errors.Join(err, errors.New("the judge was never asked"))
	}
	return got, verdict, err
}

// post sends a body as JSON to the judge's own interface.
func post(url string, body any) error {
	raw, err := json.Marshal(body)
	if err == nil {
		_, err = ask(http.MethodPost, url, raw)
	}
	return err
}

// askedAgain reports whether the judge's journal has the retry of a stream that it gave
// a malformed chunk. For its verdict a retry is the next request of any kind, and begins after
// the failed attempt has ended: it may read the new one before it notices that the old connection
// is gone, and a look at the list of models may come between.
func askedAgain(upstream string) (bool, error) {
	said, err := ask(http.MethodGet, upstream+"/_llmock/requests", nil)
	if err != nil {
		return false, err
	}
	var list struct {
		Requests []struct {
			Fingerprint, Fault string
			Completed          bool
		}
	}
	if err := json.Unmarshal(said, &list); err != nil {
		return false, err
	}
	r := list.Requests
	return len(r) > 1 && strings.HasPrefix(r[0].Fault, "stream:malformed") && r[len(r)-1].Fault == "" && r[len(r)-1].Completed &&
		r[0].Fingerprint == r[len(r)-1].Fingerprint, nil
}

// moreOpening is how many events come before the text beyond those of a chat completion.
func moreOpening(f Format) int {
	switch f {
	case Responses:
		return 3
	case Messages:
		return 2
	}
	return 0
}

// behaviours are the script for a format: a fault after some text stays after it.
func (j *judgement) behaviours(f Format) (out []map[string]any) {
	for _, b := range j.Script {
		b = maps.Clone(b)
		if n, ok := b["after_chunks"].(int); ok && n > 0 {
			b["after_chunks"] = n + moreOpening(f)
		}
		out = append(out, b)
	}
	return out
}

// check says what the client got, and whether it is what it should get.
func (j *judgement) check(a *Answer) (string, error) {
	whole := a.OK && a.FinishReason == "stop" && a.Text == modelText
	if j.Tools {
		whole = a.OK && a.FinishReason == "tool_calls" && len(a.ToolCalls) == 1 && a.ToolCalls[0].Name == "get_weather" &&
			json.Valid([]byte(a.ToolCalls[0].Arguments))
	}
	switch {
	case whole && !j.Honest:
		return "complete", nil
	case whole:
		return "complete", errors.New("an answer, where the upstream only refused")
	case a.OK:
		return "wrong", fmt.Errorf("the client took this for an answer: %q, calls %v, finish_reason %q", a.Text, a.ToolCalls, a.FinishReason)
	case j.Honest:
		return "the error", nil
	}
	return "error", fmt.Errorf("the client got an error: %s (%q before it)", a.errorLine(), a.Text)
}

// startJudge starts LLMock and waits until it answers.
func startJudge(t tree, name string) (url string, stop func(), err error) {
	addr, err := upstreamtest.FreeAddr()
	if err != nil {
		return "", nil, err
	}
	host, port, _ := strings.Cut(addr, ":")
	log, err := os.Create(t.cached("logs", name+"-llmock.log"))
	if err != nil {
		return "", nil, err
	}
	defer log.Close() // the process has it, too
	cmd := exec.Command(t.cached(judgeClient, "bin", "llmock"), "serve", "--host", host, "--port", port, "--log-level", "warning")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the judge: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	url = "http://" + addr
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err = ask(http.MethodPost, url+"/_llmock/reset", nil); err == nil {
			return url, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("the judge did not start, see %s: %w", log.Name(), err)
}

// ask makes one request of the judge's own interface.
func ask(method, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("the judge says %s: %s", res.Status, said)
	}
	return said, err
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/proxy/upstreamtest"
)

// The lab asks a real model on a real server, straight and through the gateway. No
// scripted upstream can tell whether something helps a model.

const (
	labWindow = 4096 // tokens of context of the server
	cutAfter  = 6000 // bytes of an answer's connection, of every other one
)

// trial is something that is asked of the model a number of times.
type trial struct {
	name  string
	right string // what counts
	n     int
	cut   bool // every other connection breaks
	ask   func(ctx context.Context, base string, i int) (bool, error)
}

// trials are the lab's, each asked so many times.
func trials(n int) []trial {
	list := []trial{
		{"a stream that is cut, temperature 0", "the answer is whole", len(questions), true, cutAnswer(0)},
		{"a stream that is cut, temperature 0.8", "the answer is whole", len(questions), true, cutAnswer(0.8)},
		{"a conversation larger than the window", "it is answered", len(questions), false, longTalk},
		{"a task that needs a tool", "a call that can be run", n, false, firstCall},
		{"a file read by its name, whose path a search has shown", "the next call has the path", n, false, afterFailures(1)},
		{"the same a second time", "the next call has the path", n, false, afterFailures(2)},
		{"the same a third time", "the next call has the path", n, false, afterFailures(3)},
	}
	for _, s := range situations {
		list = append(list, trial{s.name, s.right, n, false, s.ask})
	}
	return list
}

// lab runs the trials whose name contains only, and prints a table in Markdown.
func lab(ctx context.Context, gateway, server, model, only string, n int, out io.Writer) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, server, "-m", model, "--host", "127.0.0.1", "--port", port, "--jinja", "-c", fmt.Sprint(labWindow), "-np", "1")
	c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(server))
	stop, err := launch(c)
	if err != nil {
		return err
	}
	defer stop()
	if err := ready(ctx, "http://127.0.0.1:"+port+"/health"); err != nil {
		return err
	}
	fmt.Fprintf(out, "| %s | counts | straight | through Rebound | of |\n|---|---|---|---|---|\n", strings.TrimSuffix(filepath.Base(model), ".gguf"))
	for _, t := range trials(n) {
		if !strings.Contains(t.name, only) {
			continue
		}
		var right [2]int
		for way := range right {
			if right[way], err = t.run(ctx, gateway, "127.0.0.1:"+port, way == 1); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d |\n", t.name, t.right, right[0], right[1], t.n)
	}
	return nil
}

// launch starts a program; stop ends it.
func launch(c *exec.Cmd) (stop func(), err error) {
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}, nil
}

// run makes a trial at the server, or through a gateway that starts with it.
func (t *trial) run(ctx context.Context, gateway, server string, through bool) (right int, err error) {
	if t.cut {
		l, err := cutter(server)
		if err != nil {
			return 0, err
		}
		defer l.Close()
		server = l.Addr().String()
	}
	base := "http://" + server + "/v1"
	if through {
		addr, err := upstreamtest.FreeAddr()
		if err != nil {
			return 0, err
		}
		stop, err := launch(exec.CommandContext(ctx, gateway, "serve", "--listen", addr, "--upstream", base))
		if err != nil {
			return 0, err
		}
		defer stop()
		if err := ready(ctx, "http://"+addr+"/readyz"); err != nil {
			return 0, err
		}
		base = "http://" + addr + "/v1"
	}
	for i := range t.n {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		ok, err := t.ask(ctx, base, i)
		cancel()
		if err != nil {
			return right, err
		}
		if ok {
			right++
		}
	}
	return right, nil
}

// cutter is a listener before a server that cuts every other connection, the first
// one included, after cutAfter bytes of what the server sends.
func cutter(server string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	var count atomic.Int64
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				up, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer up.Close()
				go func() { _, _ = io.Copy(up, client) }()
				if count.Add(1)%2 == 1 {
					_, _ = io.CopyN(client, up, cutAfter)
				} else {
					_, _ = io.Copy(client, up)
				}
			}()
		}
	}()
	return l, nil
}

// questions have answers of some length.
var questions = []string{
	"Explain how a hash map works in five sentences.", "Write a short story about a lighthouse keeper.", "List eight uses of a pocket knife, one sentence each.",
	"Describe how to make tea step by step.", "What is the difference between TCP and UDP? Answer in detail.", "Tell me about the water cycle in a paragraph.",
	"Explain recursion to a child.", "Write a polite email asking for a refund.",
}

// object is a JSON object.
type object = map[string]any

// post sends a request for a chat completion.
func post(ctx context.Context, base string, body object) (*http.Response, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

func user(text string) object { return object{"role": "user", "content": text} }

// cutAnswer asks for a stream: right is one that ends with a reason and without an error.
func cutAnswer(temperature float64) func(context.Context, string, int) (bool, error) {
	return func(ctx context.Context, base string, i int) (bool, error) {
		res, err := post(ctx, base, object{"model": "m", "stream": true, "temperature": temperature, "max_tokens": 160, "messages": []object{user(questions[i])}})
		if err != nil {
			return false, ctx.Err() // what breaks before it begins is a cut, too
		}
		defer res.Body.Close()
		finished := false
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var chunk struct {
				Error   json.RawMessage
				Choices []struct {
					Finish string `json:"finish_reason"`
				}
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); !ok || json.Unmarshal([]byte(data), &chunk) != nil { // a comment, an empty line, [DONE]
				continue
			}
			if chunk.Error != nil {
				return false, nil
			}
			finished = finished || len(chunk.Choices) > 0 && chunk.Choices[0].Finish != ""
		}
		return finished && lines.Err() == nil, ctx.Err()
	}
}

// message is what a model answers.
type message struct {
	Content string
	Calls   []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// said returns the text and the calls together: some models write their calls into the text.
func (m message) said() string {
	said := m.Content
	for _, c := range m.Calls {
		said += c.Function.Name + c.Function.Arguments
	}
	return said
}

// called is an assistant's message with one call, resulted the message with its result.
func called(id, name, arguments string) object {
	return object{"role": "assistant", "content": nil, "tool_calls": []object{{"id": id, "type": "function", "function": object{"name": name, "arguments": arguments}}}}
}

func resulted(id, text string) object {
	return object{"role": "tool", "tool_call_id": id, "content": text}
}

// whole asks for an answer that is not streamed; it is empty where there is none.
func whole(ctx context.Context, base string, body object) (message, error) {
	res, err := post(ctx, base, body)
	if err != nil {
		return message{}, err
	}
	defer res.Body.Close()
	var answer struct{ Choices []struct{ Message message } }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Choices) == 0 {
		return message{}, err
	}
	return answer.Choices[0].Message, nil
}

// longTalk asks at the end of a conversation that is twice as large as the window.
func longTalk(ctx context.Context, base string, i int) (bool, error) {
	var messages []object
	for n := 0; n*60 < 2*labWindow; n++ { // some sixty tokens each
		messages = append(messages, user(fmt.Sprintf("Station %d reports: the water level is %d cm, the wind comes from %d degrees, and %d birds were counted.", n, n*7%400, n*31%360, n*n%97)),
			object{"role": "assistant", "content": fmt.Sprintf("Noted: station %d.", n)})
	}
	m, err := whole(ctx, base, object{"model": "m", "temperature": 0, "max_tokens": 60, "messages": append(messages, user(questions[i]))})
	return m.Content != "", err
}

// labTools are those of the tasks.
var labTools = json.RawMessage(`[
	{"type":"function","function":{"name":"search","description":"Search the code base for text","parameters":{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}}},
	{"type":"function","function":{"name":"read_file","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]`)

// labTask is a name that is looked for, and where it stands.
type labTask struct{ symbol, file, path string }

// taskOf is the i-th task, the same in every run.
func taskOf(i int) labTask {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	of := func(list ...string) string { return list[r.IntN(len(list))] }
	t := labTask{symbol: of("Retry", "ProgressTracker", "TokenCache", "Pool", "Invoice", "Ranker", "Linker", "Router", "useFetch", "Writer"),
		file: of("retry.ts", "progress-tracker.ts", "token_cache.py", "pool.go", "invoice.rb", "ranker.rs", "link.mjs", "router.go", "useFetch.tsx", "writer.py", "parser.js")}
	t.path = of("src/core/net", "packages/agent-core/src/executor", "lib/auth/session", "internal/store/redis", "app/models/billing", "services/search/index", "pkg/api/v2") + "/" + t.file
	return t
}

func (t labTask) begin() []object {
	return []object{{"role": "system", "content": "You are a coding agent. Use the tools to answer. Call one tool at a time."}, user("What does " + t.symbol + " do? Read the file that defines it.")}
}

// act asks for the next step of a task.
func act(ctx context.Context, base string, messages []object) (message, error) {
	return whole(ctx, base, object{"model": "m", "temperature": 0, "max_tokens": 120, "messages": messages, "tools": labTools})
}

// firstCall begins a task: right is a call in its own field, of a tool that exists, with
// the argument that it needs.
func firstCall(ctx context.Context, base string, i int) (bool, error) {
	m, err := act(ctx, base, taskOf(i).begin())
	if err != nil || len(m.Calls) == 0 {
		return false, err
	}
	call := m.Calls[0].Function
	var arguments struct{ Query, Path string }
	if json.Unmarshal([]byte(call.Arguments), &arguments) != nil {
		return false, nil
	}
	return call.Name == "search" && arguments.Query != "" || call.Name == "read_file" && arguments.Path != "", nil
}

// afterFailures is a task in which a search has shown the path, and the file was then
// read by its name alone so many times.
func afterFailures(times int) func(context.Context, string, int) (bool, error) {
	return func(ctx context.Context, base string, i int) (bool, error) {
		t := taskOf(i)
		messages := append(t.begin(), called("c1", "search", argument("query", t.symbol)),
			resulted("c1", fmt.Sprintf("%s:12: export class %s {\ntest/%s.spec:3: new %s()", t.path, t.symbol, t.file, t.symbol)))
		for n := range times {
			id := fmt.Sprintf("c%d", n+2)
			messages = append(messages, called(id, "read_file", argument("path", t.file)), resulted(id, fmt.Sprintf("ENOENT: no such file or directory, open '%s'", t.file)))
		}
		m, err := act(ctx, base, messages)
		said := m.said()
		return strings.Contains(said, "read_file") && strings.Contains(said, t.path), err
	}
}

package annotate_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// toolRules are the rules of the program, read once.
var toolRules = inspect.NewRules(configs.ToolRules)

func stage(t testing.TB, change func(*annotate.Config)) (*annotate.Stage, *recoverytest.Observer) {
	t.Helper()
	chains, err := configs.Chains()
	if err != nil {
		t.Fatal(err)
	}
	cfg := annotate.Defaults()
	cfg.Holdout = 0
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	o := &recoverytest.Observer{}
	s, err := annotate.New(cfg, chains, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

type object = map[string]any

// tool is a definition with parameters as name: JSON type; a * marks required ones.
func tool(name, about string, params ...string) object {
	props, required := object{}, []string{}
	for i := 0; i+1 < len(params); i += 2 {
		p := params[i]
		if p[0] == '*' {
			p = p[1:]
			required = append(required, p)
		}
		var schema any = object{"type": params[i+1]}
		if params[i+1][0] == '{' {
			schema = json.RawMessage(params[i+1])
		}
		props[p] = schema
	}
	return object{"type": "function", "function": object{"name": name, "description": about,
		"parameters": object{"type": "object", "properties": props, "required": required}}}
}

var (
	bash  = tool("bash", "Run a shell command.", "*command", "string", "timeout", "number")
	read  = tool("read", "Read a file.", "*path", "string", "offset", "integer", "limit", "integer")
	write = tool("write", "Write a file.", "*path", "string", "*content", "string")
	ls    = tool("ls", "List a directory.", "path", "string")
	grep  = tool("grep", "Search file contents.", "*pattern", "string", "path", "string")
	ask   = tool("ask_user", "Ask the user a question.", "*question", "string")
)

// talk builds a history.
type talk struct {
	tools    []object
	messages []object
	calls    int
}

func agent(tools ...object) *talk {
	return &talk{tools: tools, messages: []object{{"role": "system", "content": "You are a coding agent."}, {"role": "user", "content": "Please get the tests to pass."}}}
}

func (c *talk) user(text string) *talk {
	c.messages = append(c.messages, object{"role": "user", "content": text})
	return c
}

func (c *talk) says(text string) *talk {
	c.messages = append(c.messages, object{"role": "assistant", "content": text})
	return c
}

// call adds a call and what it answered.
func (c *talk) call(name string, args object, answer string) *talk {
	return c.turn([][]any{{name, args, answer}})
}

// turn adds calls that are made at once, each a name, arguments and what it answered.
func (c *talk) turn(calls [][]any) *talk {
	var made []object
	var answers []object
	for _, call := range calls {
		raw, err := json.Marshal(call[1])
		if err != nil {
			panic(err)
		}
		c.calls++
		id := fmt.Sprintf("call_%d", c.calls)
		made = append(made, object{"id": id, "type": "function", "function": object{"name": call[0], "arguments": string(raw)}})
		answers = append(answers, object{"role": "tool", "tool_call_id": id, "content": call[2]})
	}
	c.messages = append(append(c.messages, object{"role": "assistant", "content": nil, "tool_calls": made}), answers...)
	return c
}

func (c *talk) run(command, answer string) *talk {
	return c.call("bash", object{"command": command}, answer)
}

func (c *talk) bytes() []byte {
	body := object{"model": "m", "messages": c.messages}
	if len(c.tools) > 0 {
		body["tools"] = c.tools
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return raw
}

// exchange is what the stages before this one find out about a body whose failure is the
// second of the same.
func exchange(t testing.TB, raw []byte) *recovery.Exchange {
	t.Helper()
	b := recoverytest.Parse(t, raw, transcript.Chat)
	x := &recovery.Exchange{Request: recovery.Request{ID: "r", Body: b, Model: "m", Mode: recovery.ModeAct}, Conversation: recovery.Conversation{Session: "s"}}
	for _, r := range trajectory.Results(b) {
		x.Results = append(x.Results, toolRules.Judge(r))
	}
	for i := range x.Results {
		if x.Results[i].Failed {
			x.Turn.Failure = &x.Results[i]
		}
	}
	x.Turn.Seen, x.Turn.Streak = 1, 1
	if x.Turn.Failure != nil {
		x.Ladder = recovery.Ladder{Rung: recovery.RungAgain, Failure: x.Turn.Failure, Same: 2, Kind: 2, Met: 1}
	}
	return x
}

func (c *talk) exchange(t testing.TB) *recovery.Exchange { return exchange(t, c.bytes()) }

// often is the exchange at the fifth failure of the same.
func (c *talk) often(t testing.TB) *recovery.Exchange {
	x := c.exchange(t)
	x.Ladder.Same = 5
	return x
}

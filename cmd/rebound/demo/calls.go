package demo

import (
	"encoding/json"
	"reflect"

	"github.com/tidwall/gjson"
)

// toolCall is a call of one of the agent's tools.
type toolCall struct{ name, args string }

// appendCalls adds the calls of an event, or of a complete answer, as most SDKs do: a fragment
// belongs to the call with its index.
func appendCalls(calls []toolCall, list gjson.Result) []toolCall {
	list.ForEach(func(_, c gjson.Result) bool {
		i := int(c.Get("index").Int())
		if !c.Get("index").Exists() || i > len(calls) || i < 0 {
			i = len(calls)
		}
		if i == len(calls) {
			calls = append(calls, toolCall{})
		}
		calls[i].name += c.Get("function.name").Str
		calls[i].args += c.Get("function.arguments").Str
		return true
	})
	return calls
}

// problem returns why the agent cannot run a call, or "".
func (c toolCall) problem() string {
	need := required(c.name)
	args := gjson.Parse(c.args)
	switch {
	case need == "":
		return "no such tool"
	case !json.Valid([]byte(c.args)) || !args.IsObject():
		return "not JSON"
	case args.Get(need).Type != gjson.String:
		return need + " is missing"
	case args.Get("limit").Exists() && args.Get("limit").Type != gjson.Number:
		return "limit is not a number"
	}
	return ""
}

// equal reports whether two calls mean the same to the tool.
func (c toolCall) equal(o toolCall) bool {
	var a, b any
	return c.name == o.name && json.Unmarshal([]byte(c.args), &a) == nil && json.Unmarshal([]byte(o.args), &b) == nil && reflect.DeepEqual(a, b)
}

// judgeCalls sets the verdict on an answer that should contain the call want; again means that want already failed five times.
func (o *outcome) judgeCalls(r reply, want toolCall, again bool) {
	switch {
	case len(r.calls) == 0 && r.text != "":
		o.verdict, o.problem = unusable, "call shown as text"
	case len(r.calls) == 0:
		o.verdict = empty
	case r.calls[0].problem() != "":
		o.verdict, o.problem = unusable, "bad call: "+r.calls[0].problem()
	case again && r.calls[0].equal(want):
		o.verdict, o.problem = unusable, "the same call once more"
	case len(r.calls) == 1 && r.calls[0].equal(want):
		o.verdict = complete
	default:
		o.verdict = wrong
	}
}

package demo

import (
	"encoding/json"
	"reflect"

	"github.com/tidwall/gjson"
)

// toolCall is a call of the agent's tools.
type toolCall struct{ name, args string }

// add puts the calls of one event, or of a whole answer, together as most SDKs
// do: fragments belong to the call with their index.
func add(calls []toolCall, list gjson.Result) []toolCall {
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

// trouble says why the agent cannot run a call; "" if it can.
func (c toolCall) trouble() string {
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
		return "limit is no number"
	}
	return ""
}

// is reports whether two calls are the same to the tool.
func (c toolCall) is(o toolCall) bool {
	var a, b any
	return c.name == o.name && json.Unmarshal([]byte(c.args), &a) == nil && json.Unmarshal([]byte(o.args), &b) == nil && reflect.DeepEqual(a, b)
}

// judgeCalls says what the agent's user has of an answer where a call was due.
func (o *outcome) judgeCalls(r reply, want toolCall, again bool) {
	switch {
	case len(r.calls) == 0 && r.text != "":
		o.verdict, o.problem = unusable, "call shown as text"
	case len(r.calls) == 0:
		o.verdict = empty
	case r.calls[0].trouble() != "":
		o.verdict, o.problem = unusable, "bad call: "+r.calls[0].trouble()
	case again && r.calls[0].is(want):
		o.verdict, o.problem = unusable, "the same call once more"
	case len(r.calls) == 1 && r.calls[0].is(want):
		o.verdict = complete
	default:
		o.verdict = wrong
	}
}

package upstreamtest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// callForm is how a tool call is sent.
type callForm int

const (
	formFragments callForm = iota
	formWhole
	formMerged
	formNoIndex
	formNames
	formObject
	formMessage
)

var callForms = map[string]callForm{
	"whole": formWhole, "merged": formMerged, "no-index": formNoIndex, "names": formNames, "object": formObject, "message": formMessage,
}

func setCallForm(st *step, v string) error {
	form, ok := callForms[v]
	if !ok {
		return fmt.Errorf("%q is not whole, merged, no-index, names, object or message", v)
	}
	st.form = form
	return nil
}

// LeakedCall returns a tool call as it appears in the text if the server does not
// parse it.
func LeakedCall(tool, args string) string {
	name := appendString(nil, tool)
	return `<tool_call>{"name":` + string(name) + `,"arguments":` + args + `}</tool_call>`
}

// setLeak reads a text, escaped like a query parameter.
func setLeak(st *step, v string) (err error) {
	st.leak = true
	st.leaked, err = url.QueryUnescape(v)
	return err
}

// leak moves the call into the text, or replaces the answer by the script's text.
func (x *exchange) leak(c *content) {
	if x.st.leaked != "" {
		c.pieces, c.text, c.tool, c.args, c.finish = pieces(x.st.leaked, x.t.chunks), len(x.st.leaked), "", "", "stop"
		return
	}
	tool, args := c.tool, c.args
	if tool == "" {
		if tool, args = x.q.firstTool(), ToolArguments; x.st.args != nil {
			args = *x.st.args
		}
		c.pieces, c.text = nil, 0
	}
	text := LeakedCall(tool, args)
	c.pieces = append(c.pieces[:len(c.pieces):len(c.pieces)], pieces(text, max(1, len(text)/8))...)
	c.text += len(text)
	c.tool, c.args, c.finish = "", "", "stop"
}

// callRejected returns the error of a provider that rejects its model's tool call.
func callRejected(q *request) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", code: "tool_use_failed",
		message:  "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
		rejected: LeakedCall(q.firstTool(), ToolArguments)}
}

// streamCalls adds the events of a call in any form except fragments.
func (x *exchange) streamCalls(b *reply, c *content, index int, pause time.Duration) {
	list := func(elements ...string) {
		from := b.open(index)
		b.buf = append(b.buf, `{"tool_calls":[`...)
		for i, e := range elements {
			if i > 0 {
				b.buf = append(b.buf, ',')
			}
			b.buf = append(b.buf, e...)
		}
		b.buf = append(b.buf, `]}`...)
		b.close(from, pause, "", "")
	}
	name, id := string(appendString(nil, c.tool)), func(n int) string { return x.callID(index, n) }
	call := func(at, id, name, args string) string {
		e := `{` + at
		if id != "" {
			e += `"id":"` + id + `","type":"function",`
		}
		if name != "" {
			name = `"name":` + name + `,`
		}
		return e + `"function":{` + name + `"arguments":` + args + `}}`
	}
	const zero = `"index":0,`
	switch x.st.form {
	case formWhole:
		list(call(zero, id(0), name, string(appendString(nil, c.args))))
	case formObject:
		list(call(zero, id(0), name, c.args))
	case formMerged, formNoIndex, formNames:
		at, calls := zero, 1
		if x.st.form == formNoIndex {
			at = ""
		}
		if x.st.form == formMerged {
			calls = 2
		}
		for n := range calls {
			for i, p := range pieces(c.args, max(1, len(c.args)/5)) {
				which, called := id(n), name
				if i > 0 {
					which = ""
				}
				if i > 0 && x.st.form != formNames {
					called = ""
				}
				list(call(at, which, called, `"`+p+`"`))
			}
		}
	}
}

// callMessage adds a message with the calls next to the delta, where clients do not look.
func (x *exchange) callMessage(b *reply, c *content, index int) {
	b.buf = append(b.buf, `,"message":{"role":"assistant","tool_calls":`...)
	x.callList(b, c, index)
	b.buf = append(b.buf, '}')
}

// callList adds the tool_calls list of a complete message.
func (x *exchange) callList(b *reply, c *content, index int) {
	args, calls := appendString(nil, c.args), 1
	switch x.st.form {
	case formObject:
		args = []byte(c.args)
	case formMerged:
		calls = 2
	}
	b.buf = append(b.buf, '[')
	for n := range calls {
		if n > 0 {
			b.buf = append(b.buf, ',')
		}
		b.buf = append(b.buf, `{"id":"`+x.callID(index, n)+`","type":"function","function":{"name":`...)
		b.buf = appendString(b.buf, c.tool)
		b.buf = append(append(append(b.buf, `,"arguments":`...), args...), `}}`...)
	}
	b.buf = append(b.buf, ']')
}

// callID returns the id of the n-th call of a choice.
func (x *exchange) callID(choice, n int) string {
	var b reply
	b.appendCallID(x.q.n, choice)
	if n > 0 {
		b.buf = strconv.AppendInt(append(b.buf, "_c"...), int64(n), 10)
	}
	return string(b.buf)
}

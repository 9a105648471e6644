package upstreamtest

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// callForm is how a tool call is sent, as the directive call= names it. The default is in fragments.
type callForm string

const (
	formFragments callForm = ""
	formWhole     callForm = "whole"
	formMerged    callForm = "merged"
	formNoIndex   callForm = "no-index"
	formNames     callForm = "names"
	formObject    callForm = "object"
	formMessage   callForm = "message"
)

func setCallForm(st *step, v string) error {
	switch st.form = callForm(v); st.form {
	case formWhole, formMerged, formNoIndex, formNames, formObject, formMessage:
		return nil
	}
	return fmt.Errorf("%q is not whole, merged, no-index, names, object or message", v)
}

// LeakedCall returns a tool call as it appears in the text if the server does not
// parse it.
func LeakedCall(tool, args string) string {
	return `<tool_call>{"name":` + quoted(tool) + `,"arguments":` + args + `}</tool_call>`
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

// streamCalls adds the events of a call in its form.
func (x *exchange) streamCalls(b *reply, c *content, index int) {
	// call adds a chunk with one call; an empty id or name is left out.
	call := func(at, id, name, args string) {
		if id != "" {
			at += `"id":"` + id + `","type":"function",`
		}
		if name != "" {
			name = `"name":` + quoted(name) + `,`
		}
		b.chunk(index, `{"tool_calls":[{`+at+`"function":{`+name+`"arguments":`+args+`}}]}`, x.t.gap, "", "")
	}
	const zero = `"index":0,`
	at, calls := zero, 1
	switch x.st.form {
	case formWhole:
		call(zero, x.callID(index, 0), c.tool, quoted(c.args))
		return
	case formObject:
		call(zero, x.callID(index, 0), c.tool, c.args)
		return
	case formMessage:
		return
	case formFragments:
		call(zero, x.callID(index, 0), c.tool, `""`)
	case formNoIndex:
		at = ""
	case formMerged:
		calls = 2
	}
	for n := range calls {
		id, name := x.callID(index, n), c.tool
		for i, p := range pieces(c.args, max(1, len(c.args)/5)) {
			if i > 0 || x.st.form == formFragments {
				id = ""
			}
			if (i > 0 || x.st.form == formFragments) && x.st.form != formNames {
				name = ""
			}
			call(at, id, name, `"`+p+`"`)
		}
	}
}

// callList returns the tool_calls list of a complete message.
func (x *exchange) callList(c *content, index int) string {
	args, calls := quoted(c.args), 1
	switch x.st.form {
	case formObject:
		args = c.args
	case formMerged:
		calls = 2
	}
	var list []string
	for n := range calls {
		list = append(list, `{"id":"`+x.callID(index, n)+`","type":"function","function":{"name":`+quoted(c.tool)+`,"arguments":`+args+`}}`)
	}
	return `[` + strings.Join(list, ",") + `]`
}

// callID returns the id of the n-th call of a choice.
func (x *exchange) callID(choice, n int) string {
	id := ToolCallID(x.q.n)
	if choice > 0 {
		id += "_" + strconv.Itoa(choice)
	}
	if n > 0 {
		id += "_c" + strconv.Itoa(n)
	}
	return id
}

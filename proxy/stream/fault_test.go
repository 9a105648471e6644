package stream

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// What comes in place of an answer is asked whether it is an error, wherever it stands;
// what has content never is.
func TestFault(t *testing.T) {
	const fault = `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`
	for _, c := range []struct {
		name, body string
		asked      bool
	}{
		{"an event without a choice", one.role() + "data: " + fault + "\n\n" + end, true},
		{"without an end mark", "data: " + fault + "\n\n", true},
		{"beside an empty end", one.role() + strings.Replace(one.finish("stop"), `"model"`, `"base_resp":{"status_msg":"insufficient balance"},"model"`, 1) + end, true},
		{"no event at all", "insufficient balance", true},
		{"a page", "<html>\n\ninsufficient balance\n</html>", true},
		{"after text", one.role() + one.text("hi") + "data: " + fault + "\n\n", false},
		{"an empty answer", one.role() + one.finish("stop") + end, false},
		{"pings", ": insufficient balance\n\n", false},
		{"the text of an answer", one.role() + one.text("insufficient balance") + one.finish("stop") + end, false},
	} {
		for _, accept := range []bool{false, true} {
			x := newExchange()
			o := x.options(func(o *Options) {
				o.AcceptEmpty = accept
				o.Fault = func(b []byte) bool { return bytes.Contains(b, []byte("insufficient balance")) }
			})
			a, broken := Open(respond(iotest.OneByteReader(strings.NewReader(c.body))), o)
			if broken == nil {
				broken = a.Deliver(context.Background())
			}
			if got := broken != nil && broken.Event != nil; got != c.asked {
				t.Errorf("%s (accept empty %t): %+v", c.name, accept, broken)
			}
		}
	}
	for _, body := range []string{fault, strings.Replace(fault, "{", `{"choices":null,"usage":{"total_tokens":0},`, 1)} {
		x := newExchange()
		o := x.options(func(o *Options) {
			o.AcceptEmpty = true
			o.Fault = func(b []byte) bool { return bytes.Contains(b, []byte("insufficient balance")) }
		})
		if _, broken := ReadWhole(&http.Response{StatusCode: 200, Header: http.Header{}, Body: respond(strings.NewReader(body)).Body}, o); broken == nil || string(broken.Event) != body {
			t.Errorf("%s: %+v", body, broken)
		}
	}
}

package stream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestHead(t *testing.T) {
	for body, want := range map[string]Form{
		`{"id":1}`: FormJSON, " \r\n[1]": FormJSON, byteOrderMark + "{}": FormJSON, byteOrderMark + "\ndata: {}\n\n": FormEvents,
		"data: {}\n\n": FormEvents, "data:{}\n\n": FormEvents, ": ping\n\n": FormEvents, "event: a\n": FormEvents, "id: 1\n": FormEvents, "retry: 5\n": FormEvents,
		"\n\n\ndata: {}\n\n": FormEvents, "": FormOther, "error: no data": FormOther, "<html>": FormOther, "dat": FormOther, "\xef\xbb": FormOther,
		strings.Repeat(" ", 100) + "{}": FormOther, // whoever waits that long is not waited for
	} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(body), "byte by byte": iotest.OneByteReader(strings.NewReader(body)), "with its end": iotest.DataErrReader(strings.NewReader(body)),
		} {
			var h Head
			if got := h.Look(io.NopCloser(r), nil); got != want {
				t.Errorf("%q %s: %d, want %d", body, name, got, want)
			}
			if all, err := io.ReadAll(&h); string(all) != body || err != nil {
				t.Errorf("%q %s: read %q, %v", body, name, all, err)
			}
		}
	}
	var h Head
	broken := errors.New("broken")
	h.Look(io.NopCloser(io.MultiReader(strings.NewReader("da"), iotest.ErrReader(broken))), nil)
	if all, err := io.ReadAll(&h); string(all) != "da" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v", all, err)
	}
}

func TestLenient(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":NaN}`:                      `{"a":0.0}`,
		`{"a":[-Infinity,Infinity,NaN]}`: `{"a":[-0.000000,0.000000,0.0]}`,
		`{"a":"NaN \" Infinity","b":1}`:  ``,
		`{"a":"NaN`:                      ``,
		`{"a":"\"","b":NaN}`:             `{"a":"\"","b":0.0}`,
		`{"a":Nope}`:                     ``,
		`{}`:                             ``,
	} {
		if got := string(lenient([]byte(in))); got != want {
			t.Errorf("%s became %q", in, got)
		}
	}
}

// What SDKs read although it is no JSON is no flaw, and passes as it is.
func TestNumberless(t *testing.T) {
	nan := strings.Replace(one.text("odd "), `"index":0`, `"index":0,"score":NaN`, 1)
	in := one.role() + one.text("so ") + nan + one.text("far ") + nan + one.finish("stop") + end
	x := newExchange()
	if broken := x.serve(strings.NewReader(in)); broken != nil || x.got() != in || x.sink.Sent() != "so odd far odd " {
		t.Errorf("%+v after %q", broken, x.sink.Sent())
	}
	for body, odd := range map[string]string{
		byteOrderMark + `{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}]}`: "",
		`{"choices":[{"message":{"content":"A"},"score":-Infinity}]}`:                      "",
		`{"choices":[{"message":{"content":"A"}},]}`:                                       OddJSON,
		`{"choices":[{"message":{"content":"A`:                                             "cut",
		`{"response":"A"}`:                                                                 OddForm,
		`{"choices":[]}`:                                                                   "cut",
		`<p>{}</p>`:                                                                        OddText,
	} {
		x := newExchange()
		w, broken := ReadWhole(respond(strings.NewReader(body)), x.options())
		if odd == "cut" {
			if broken == nil || broken.Odd != "" || broken.Flawed != nil {
				t.Errorf("%s: %+v", body, broken)
			}
			continue
		}
		if odd == OddText { // nothing that a client could read
			if broken == nil || broken.Odd != odd || broken.Flawed != nil {
				t.Errorf("%s: %+v", body, broken)
			}
			continue
		}
		var rest Deliverable = w
		if broken != nil {
			rest = broken.Flawed
		}
		if (broken != nil) != (odd != "") || broken != nil && broken.Odd != odd {
			t.Errorf("%s: %+v", body, broken)
			continue
		}
		if broken := rest.Deliver(t.Context()); broken != nil || x.got() != body {
			t.Errorf("%s became %s", body, x.got())
		}
	}
}

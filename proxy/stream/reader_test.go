package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// event is a copy of an Event.
type event struct {
	raw, name, data string
	has             bool
}

func (e event) String() string {
	return fmt.Sprintf("{%.200q name %q data %.200q %v}", e.raw, e.name, e.data, e.has)
}

// readAll reads events until the error that ends them.
func readAll(src io.Reader, bound int64) (events []event, err error) {
	return drained(NewReader(src, bound))
}

func drained(r *Reader) (events []event, err error) {
	for {
		ev, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again == nil {
				return events, errors.New("an event after the error " + err.Error())
			}
			return events, err
		}
		events = append(events, event{string(ev.Raw), string(ev.Name), string(ev.Data), ev.HasData})
	}
}

// reference parses a whole stream, as the specification says, a byte at a time.
func reference(in string) (events []event, err error) {
	var ev event
	var lines []string
	begin, line := 0, 0
	if strings.HasPrefix(in, "\xef\xbb\xbf") {
		line = 3
	}
	for i := line; i < len(in); i++ {
		if in[i] != '\n' && in[i] != '\r' {
			continue
		}
		text := in[line:i]
		if in[i] == '\r' && i+1 < len(in) && in[i+1] == '\n' {
			i++
		}
		line = i + 1
		if text == "" {
			ev.raw, ev.data = in[begin:line], strings.Join(lines, "\n")
			events = append(events, ev)
			ev, lines, begin = event{}, nil, line
			continue
		}
		field, value, _ := strings.Cut(text, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			ev.has, lines = true, append(lines, value)
		case "event":
			ev.name = value
		}
	}
	if begin < len(in) {
		return events, io.ErrUnexpectedEOF
	}
	return events, io.EOF
}

// chunked reads in pieces whose sizes come from a list that is used round and round.
type chunked struct {
	rest  string
	sizes []byte
	i     int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := 1
	if len(c.sizes) > 0 {
		n += int(c.sizes[c.i%len(c.sizes)])
		c.i++
	}
	n = copy(p, c.rest[:min(n, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func sameEvents(t *testing.T, how string, got []event, gotErr error, want []event, wantErr error) {
	t.Helper()
	if len(got) != len(want) || gotErr != wantErr {
		t.Fatalf("%s: %d events and %v, want %d and %v\ngot  %v\nwant %v", how, len(got), gotErr, len(want), wantErr, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: event %d\ngot  %v\nwant %v", how, i, got[i], want[i])
		}
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 9000)
	has := func(raw, data string) event { return event{raw: raw, data: data, has: true} }
	cases := []struct {
		name string
		in   string
		want []event
		err  error
	}{
		{"nothing", "", nil, io.EOF},
		{"LF", "data: a\n\ndata: b\n\n", []event{has("data: a\n\n", "a"), has("data: b\n\n", "b")}, io.EOF},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []event{has("data: a\r\n\r\n", "a"), has("data: b\r\n\r\n", "b")}, io.EOF},
		{"CR", "data: a\r\rdata: b\r\r", []event{has("data: a\r\r", "a"), has("data: b\r\r", "b")}, io.EOF},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\r",
			[]event{has("data: a\r\n\n", "a"), has("data: b\n\r\n", "b"), has("data: c\r\r\n", "c"), has("data: d\n\r", "d")}, io.EOF},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []event{has("\xef\xbb\xbfdata: a\n\n", "a")}, io.EOF},
		{"byte order mark before a long event", "\xef\xbb\xbfdata: " + long + "\n\n", []event{has("\xef\xbb\xbfdata: "+long+"\n\n", long)}, io.EOF},
		{"byte order mark later is text", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []event{has("data: a\n\n", "a"), {raw: "\xef\xbb\xbfdata: b\n\n"}}, io.EOF},
		{"byte order mark after a blank line", "\n\xef\xbb\xbfdata: b\n\n", []event{{raw: "\n"}, {raw: "\xef\xbb\xbfdata: b\n\n"}}, io.EOF},
		{"half a byte order mark", "\xef\xbb\n\n", []event{{raw: "\xef\xbb\n\n"}}, io.EOF},
		{"comment", ": ping\n\ndata: a\n\n", []event{{raw: ": ping\n\n"}, has("data: a\n\n", "a")}, io.EOF},
		{"comment inside", "data: a\n: ping\ndata: b\n\n", []event{has("data: a\n: ping\ndata: b\n\n", "a\nb")}, io.EOF},
		{"comment of one line before an event", ": ping\ndata: a\n\n", []event{has(": ping\ndata: a\n\n", "a")}, io.EOF},
		{"many data lines", "data: a\ndata\ndata:\ndata:  d\n\n", []event{has("data: a\ndata\ndata:\ndata:  d\n\n", "a\n\n\n d")}, io.EOF},
		{"many data lines twice", "data: a\ndata: b\n\ndata: c\ndata: d\n\n", []event{has("data: a\ndata: b\n\n", "a\nb"), has("data: c\ndata: d\n\n", "c\nd")}, io.EOF},
		{"no colon", "data\n\n", []event{has("data\n\n", "")}, io.EOF},
		{"no space", "data:a\n\n", []event{has("data:a\n\n", "a")}, io.EOF},
		{"two spaces, tab", "data:  a\n\ndata:\tb\n\n", []event{has("data:  a\n\n", " a"), has("data:\tb\n\n", "\tb")}, io.EOF},
		{"colons in the value", "data: a:b: c\n\n", []event{has("data: a:b: c\n\n", "a:b: c")}, io.EOF},
		{"name", "event: error\ndata: a\n\ndata: b\n\n", []event{{"event: error\ndata: a\n\n", "error", "a", true}, has("data: b\n\n", "b")}, io.EOF},
		{"other fields", "id: 7\nretry: 10\nfoo: bar\n\n", []event{{raw: "id: 7\nretry: 10\nfoo: bar\n\n"}}, io.EOF},
		{"names are exact", "Data: a\n data: b\ndata : c\n\n", []event{{raw: "Data: a\n data: b\ndata : c\n\n"}}, io.EOF},
		{"blank lines", "\n\r\n\r", []event{{raw: "\n"}, {raw: "\r\n"}, {raw: "\r"}}, io.EOF},
		{"unfinished", "data: a\n\ndata: b", []event{has("data: a\n\n", "a")}, io.ErrUnexpectedEOF},
		{"unfinished after its line", "data: a\n\ndata: b\n", []event{has("data: a\n\n", "a")}, io.ErrUnexpectedEOF},
		{"unfinished only", "d", nil, io.ErrUnexpectedEOF},
		{"longer than the buffer", "data: " + long + "\n\ndata: b\n\n", []event{has("data: "+long+"\n\n", long), has("data: b\n\n", "b")}, io.EOF},
		{"lines longer than the buffer", "data: " + long + "\ndata: " + long + "\n\n", []event{has("data: "+long+"\ndata: "+long+"\n\n", long+"\n"+long)}, io.EOF},
		{"buffer moved within an event", strings.Repeat("data: a\n\n", 440) + "data: b\ndata: " + long + "\n\n",
			append(repeatEvent(has("data: a\n\n", "a"), 440), has("data: b\ndata: "+long+"\n\n", "b\n"+long)), io.EOF},
		{"zero bytes", "data: \x00\n\n", []event{has("data: \x00\n\n", "\x00")}, io.EOF},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want, wantErr := reference(c.in)
			sameEvents(t, "the reference parser", want, wantErr, c.want, c.err)
			for how, src := range map[string]io.Reader{
				"whole":           strings.NewReader(c.in),
				"byte by byte":    iotest.OneByteReader(strings.NewReader(c.in)),
				"halves":          iotest.HalfReader(strings.NewReader(c.in)),
				"error with data": iotest.DataErrReader(strings.NewReader(c.in)),
				"threes":          &chunked{rest: c.in, sizes: []byte{2}},
			} {
				got, err := readAll(src, 1<<20)
				sameEvents(t, how, got, err, c.want, c.err)
			}
		})
	}
}

func repeatEvent(ev event, n int) []event {
	out := make([]event, n)
	for i := range out {
		out[i] = ev
	}
	return out
}

func TestReaderError(t *testing.T) {
	broken := errors.New("connection reset")
	src := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))
	got, err := readAll(src, 1<<20)
	sameEvents(t, "broken", got, err, []event{{"data: a\n\n", "", "a", true}}, broken)
}

func TestReaderBound(t *testing.T) {
	const head, tail = "data: ", "\n\n"
	for _, bound := range []int{1 << 10, 4 << 10, 5000, 8 << 10, 100_000} {
		fits := head + strings.Repeat("x", bound-len(head)-len(tail)) + tail
		over := head + strings.Repeat("x", bound-len(head)-len(tail)+1) + tail
		for _, before := range []int{0, 1, 300, 1000} {
			small := strings.Repeat(": ping\n\n", before)
			for how, chunk := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
				got, err := readAll(chunk(strings.NewReader(small+fits+small)), int64(bound))
				if err != io.EOF || len(got) != 2*before+1 || got[before].raw != fits {
					t.Errorf("bound %d, %d events before, %s: an event of that size: %d events, %v", bound, before, how, len(got), err)
				}
				got, err = readAll(chunk(strings.NewReader(small+over+small)), int64(bound))
				if !errors.Is(err, ErrEventTooLong) || len(got) != before {
					t.Errorf("bound %d, %d events before, %s: an event that is larger: %d events, %v", bound, before, how, len(got), err)
				}
			}
		}
	}
	// Without any line end, for ever.
	got, err := readAll(iotest.OneByteReader(endless{}), 1<<16)
	if len(got) != 0 || !errors.Is(err, ErrEventTooLong) {
		t.Errorf("endless line: %d events, %v", len(got), err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestReaderLongLine: what was searched once is not searched again. Were it,
// this would take minutes.
func TestReaderLongLine(t *testing.T) {
	if line, n := cutLine([]byte("a\nb\rc"), 5, false); n != 0 {
		t.Errorf("bytes that were searched are searched again: %q", line)
	}
	if line, n := cutLine([]byte("a\nb\r\n"), 2, false); n != 5 || string(line) != "a\nb" {
		t.Errorf("after what was searched: %q, %d", line, n)
	}
	in := "data: " + strings.Repeat("x", 2<<20) + "\n\n"
	got, err := readAll(iotest.OneByteReader(strings.NewReader(in)), 4<<20)
	if err != io.EOF || len(got) != 1 || got[0].raw != in {
		t.Errorf("%d events, %v", len(got), err)
	}
}

func TestReaderReady(t *testing.T) {
	for in, want := range map[string]bool{
		"data: a\n\n":                       false,
		"data: a\n\ndata: b":                false,
		"data: a\n\ndata: b\n":              false,
		"data: a\n\ndata: b\n\n":            true,
		"data: a\r\n\r\ndata: b\r\n\r\n":    true,
		"data: a\r\n\r\ndata: b\r\n\r":      false,
		"data: a\n\ndata: b\r\n\ndata: c":   true,
		"data: a\n\n: ping\n\n":             true,
		"data: a\n\ndata: b\ndata: c\n\nda": true,
	} {
		r := NewReader(strings.NewReader(in), 1<<20)
		if _, err := r.Next(); err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		if got := r.Ready(); got != want {
			t.Errorf("%q: ready %v after its first event", in, got)
		}
	}
}

// FuzzReader: the bytes are kept, the events are those of the specification,
// and how the bytes arrive makes no difference.
// TestReaderGrows: events of all sizes around those of the buffer, in pieces of
// all sizes around them.
func TestReaderGrows(t *testing.T) {
	var in strings.Builder
	for i := range 400 {
		fmt.Fprintf(&in, "data: %s\n\n", strings.Repeat("x", i*i*7919%(1<<(1+i/30))))
	}
	want, wantErr := reference(in.String())
	for _, piece := range []int{firstBuffer - 1, firstBuffer, firstBuffer + 1, 700, usualBuffer, 1 << 20} {
		for _, most := range []int64{1 << 14, 1 << 24} {
			got, err := readAll(atMost{strings.NewReader(in.String()), piece}, most)
			sameEvents(t, fmt.Sprint("in pieces of ", piece), got, err, want, wantErr)
		}
	}
}

// atMost reads at most so many bytes at a time.
type atMost struct {
	io.Reader
	size int
}

func (p atMost) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

func FuzzReader(f *testing.F) {
	for _, in := range []string{
		"", "data: a\n\n", "data: a\r\n\r\ndata: b\r\rdata: c\n\n", "\xef\xbb\xbfdata: a\n\n", "\n\xef\xbb\xbfdata: a\n\n",
		": ping\n\nevent: error\ndata: {\ndata: }\n\ndata", "data: longer\ndata: than eight bytes\n\n", "\r\n\r\n\n\r", "data:\r",
	} {
		f.Add([]byte(in), []byte{0})
		f.Add([]byte(in), []byte{0, 6, 2, 255})
	}
	f.Fuzz(func(t *testing.T, in, sizes []byte) {
		in = []byte(strings.NewReplacer("}", ")", "[DONE]", "(DONE)").Replace(string(in))) // complete JSON needs no blank line: see TestBlankless
		want, wantErr := reference(string(in))
		got, err := readAll(bytes.NewReader(in), 1<<24)
		sameEvents(t, "at once", got, err, want, wantErr)
		var raw strings.Builder
		for _, ev := range got {
			raw.WriteString(ev.raw)
		}
		if !strings.HasPrefix(string(in), raw.String()) {
			t.Fatalf("the events' bytes %q are no beginning of %q", raw.String(), in)
		}
		if err == io.EOF && raw.Len() != len(in) {
			t.Fatalf("%d bytes lost", len(in)-raw.Len())
		}
		got, err = readAll(&chunked{rest: string(in), sizes: sizes}, 1<<24)
		sameEvents(t, "in pieces", got, err, want, wantErr)
		small := NewReader(iotest.DataErrReader(&chunked{rest: string(in), sizes: sizes}), 1<<24)
		small.buf = make([]byte, 4) // grows and moves often
		got, err = drained(small)
		sameEvents(t, "in pieces, through a small buffer", got, err, want, wantErr)
	})
}

// TestReaderIsLinear: what is quadratic in the lines or the events of 8 MiB does not come back.
func TestReaderIsLinear(t *testing.T) {
	const size = 8 << 20
	large := "data: " + strings.Repeat("x", size-64) + "\n\n" // makes room for many small ones
	for name, in := range map[string]string{
		"lines that end in CR":  "data: x" + strings.Repeat("\rx", size/2) + "\r\r",
		"lines of data":         strings.Repeat("data:\n", size/6) + "\n",
		"events that end in CR": large + strings.Repeat("data: x\r\r", size/9),
		"events with CR LF":     large + strings.Repeat("data: x\r\n\r\n", size/11),
		"comments":              large + strings.Repeat(":\n", size/2) + "\n",
	} {
		r := NewReader(strings.NewReader(in), 2*size)
		var err error
		n := 0
		for err == nil {
			r.Ready()
			var ev Event
			ev, err = r.Next()
			n += len(ev.Raw)
		}
		if !errors.Is(err, io.EOF) || n != len(in) {
			t.Errorf("%s: %d of %d bytes, %v", name, n, len(in), err)
		}
	}
}

// Events without a blank line between them are events, and get one.
func TestBlankless(t *testing.T) {
	for in, want := range map[string][]string{
		"data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n\n":                                {"data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n", "data: [DONE]\n\n"},
		"event: x\ndata: {\"a\":1}\nevent: y\ndata: {\"a\":2}\n\n":                          {"event: x\ndata: {\"a\":1}\n\n", "event: y\ndata: {\"a\":2}\n\n"},
		"data: {\"a\":1}\r\ndata: {\"a\":2}\r\n\r\n":                                        {"data: {\"a\":1}\r\n\n", "data: {\"a\":2}\r\n\r\n"},
		"data: {\"a\":\ndata: {\"b\":1}}\n\n":                                               {"data: {\"a\":\ndata: {\"b\":1}}\n\n"},
		"data: {\"a\":{}\ndata: }\n\ndata: x}\ndata: y\n\n":                                 {"data: {\"a\":{}\ndata: }\n\n", "data: x}\ndata: y\n\n"},
		"data: {\"a\":1}\ndata: {\"a\":2}\n":                                                {"data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n"},
		"data: {\"a\":1}\n\ndata: {\"a\":2}\n":                                              {"data: {\"a\":1}\n\n", "data: {\"a\":2}\n\n"},
		"data: {\"a\":1}\n\nevent: x\ndata: {\"a\":2}":                                      {"data: {\"a\":1}\n\n", "event: x\ndata: {\"a\":2}\n\n"},
		"data: {\"a\":1}\n\ndata: [DONE]":                                                   {"data: {\"a\":1}\n\n", "data: [DONE]\n\n"},
		"data: {\"a\":1}\n\ndata: {\"a\":{}":                                                {"data: {\"a\":1}\n\n"},
		"data: {\"a\":1}\n\ndata: 12":                                                       {"data: {\"a\":1}\n\n"},
		": one\ndata: {\"a\":1}\n: two\ndata: {\"a\":2}\n\n":                                {": one\ndata: {\"a\":1}\n\n", ": two\ndata: {\"a\":2}\n\n"},
		"data: {\"a\":1}\ndata: {\"a\":\"" + strings.Repeat("x", 3*firstBuffer) + "\"}\n\n": {"data: {\"a\":1}\n\n", "data: {\"a\":\"" + strings.Repeat("x", 3*firstBuffer) + "\"}\n\n"},
	} {
		for _, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			r, got := NewReader(src, 1<<20), []string(nil)
			for {
				ev, err := r.Next()
				if err != nil {
					break
				}
				got = append(got, string(ev.Raw))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: %q", in, got)
			}
		}
	}
}

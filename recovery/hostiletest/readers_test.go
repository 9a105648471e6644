package hostiletest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/configs"
	"github.com/rebound-llm/rebound/proxy/coding"
	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/conform"
	"github.com/rebound-llm/rebound/recovery/hostiletest"
	"github.com/rebound-llm/rebound/recovery/repair"
	"github.com/rebound-llm/rebound/recovery/session"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// reader is one thing that reads what others wrote. make returns the work on an
// input, nil where the input is refused before. Packages fit and inspect test
// theirs themselves.
type reader struct {
	name     string
	families []hostiletest.Family
	make     func(input string) func()
	small    int // bytes of the smaller of two inputs
}

// What is quadratic must show: in the bytes and the lines of texts, and in the
// messages and the calls of bodies, which are larger.
const (
	smallText = 4 << 10
	smallBody = 64 << 10
)

func parsed(input string) *transcript.Body {
	b, err := transcript.Parse([]byte(input), transcript.Chat, transcript.Limits{})
	if err != nil {
		return nil
	}
	return b
}

// request is a reader of requests that were accepted.
func request(name string, work func(b *transcript.Body)) reader {
	return reader{name, hostiletest.Bodies(), func(input string) func() {
		b := parsed(input)
		if b == nil {
			return nil
		}
		return func() { work(b) }
	}, smallBody}
}

func readers() (all []reader) {
	texts := hostiletest.Texts()
	add := func(name string, families []hostiletest.Family, work func(input string)) {
		all = append(all, reader{name, families, func(input string) func() { return func() { work(input) } }, smallText})
	}
	add("parse: texts", hostiletest.Requests(), func(input string) { parsed(input) })
	all = append(all, reader{"parse: bodies", hostiletest.Bodies(), func(input string) func() { return func() { parsed(input) } }, smallBody})
	all = append(all, request("session", func(b *transcript.Body) {
		in := session.Input{Body: b}
		session.Identify(in)
		session.Affinity(in)
		session.UserTurnOf(in)
		session.SideOf(b)
		session.NewKnown().Identify(in)
	}))
	for _, name := range []string{
		recovery.ConformPairing, recovery.ConformCallIDs, recovery.ConformSignatures, recovery.ConformStubTools, recovery.ConformAlternate, recovery.ConformSystem, recovery.ConformEmpty,
		recovery.ConformTextOnly, recovery.ConformMedia, recovery.ConformField, recovery.ConformKeyword, recovery.ConformItems, recovery.ConformObject, recovery.ConformPlain, recovery.ConformStrict,
	} {
		all = append(all, request("conform: "+name, func(b *transcript.Body) {
			if e := b.Edit(); (conform.Conformer{}).Conform(b, e, recovery.Edit{Conform: name, Field: "name"}) {
				_, _ = e.Body()
			}
		}))
	}

	for _, name := range []string{recovery.ConformPairing, recovery.ConformReasoning, recovery.ConformOwn, recovery.ConformItemIDs, recovery.ConformEmpty} {
		all = append(all, reader{"conform: responses: " + name, hostiletest.Histories(), func(input string) func() {
			b, err := transcript.Parse([]byte(input), transcript.Responses, transcript.Limits{})
			if err != nil {
				return nil
			}
			return func() {
				if e := b.Edit(); (conform.Conformer{}).Conform(b, e, recovery.Edit{Conform: name}) {
					_, _ = e.Body()
				}
			}
		}, smallBody})
	}

	table := classify.New(configs.UpstreamRules)
	for status, name := range map[int]string{200: "classify: event", 400: "classify: refusal", 429: "classify: limit"} {
		add(name, hostiletest.Answers(), func(input string) {
			table.Classify(recovery.Evidence{Status: status, Stream: status == 200, Body: []byte(input), Now: time.Now()})
		})
	}
	redacted := hostiletest.Answers()
	for _, part := range []string{"a", "://", "@", "key=", "Bearer ", "sk-", "A1b", "-----BEGIN ", `"password":"`, `\"`, "cookie: "} {
		redacted = append(redacted, hostiletest.Family{Name: part, Make: func(n int) string { return strings.Repeat(part, n/len(part)) }})
	}
	add("redact", redacted, func(input string) { redact.Text(input) })

	mender := repair.New(repair.Defaults())
	plain, tools := parsed(`{"model":"m","messages":[{"role":"user","content":"x"}]}`), parsed(hostiletest.Typed("x"))
	format := parsed(`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":` +
		`{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}}`)
	call := func(name, args string) recovery.Draft {
		return recovery.Draft{Calls: []recovery.DraftCall{{ID: "c", Kind: "function", Name: name, Arguments: args}}, Finish: recovery.FinishCalls}
	}
	add("repair: text", texts, func(input string) { mender.Mend(tools, recovery.Draft{Text: input, Finish: recovery.FinishStop}) })
	add("repair: JSON", texts, func(input string) { mender.Mend(format, recovery.Draft{Text: input, Finish: recovery.FinishStop}) })
	add("repair: arguments", texts, func(input string) { mender.Mend(tools, call("bash", input)) })
	add("repair: name", texts, func(input string) { mender.Mend(tools, call(input, "{}")) })
	all = append(all, request("repair: request", func(b *transcript.Body) { mender.Mend(b, call("bash", `{"comand":"x"}`)) }))
	all = append(all, reader{"repair: schema", hostiletest.Judged(), func(input string) func() {
		schema, args, _ := strings.Cut(input, "\x00")
		req := parsed(`{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"read_file","parameters":` + schema + `}}]}`)
		return func() { mender.Mend(req, call("read_file", args)) }
	}, smallText})
	all = append(all, reader{"coding", texts, func(input string) func() {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, input)
		_ = w.Close()
		return func() {
			if r, err := coding.NewReader("gzip", bytes.NewReader(b.Bytes())); err == nil {
				_, _ = io.Copy(io.Discard, r)
			}
		}
	}, smallText})

	serve := func(format stream.Format, streamed bool, req *transcript.Body, body string) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		cfg := stream.Defaults()
		o := stream.Options{Config: cfg, Format: format, Sink: stream.NewSink(httptest.NewRecorder(), cfg), Mender: mender, Request: req, Choices: 1, Started: time.Now(), Cancel: cancel,
			Ending: new(stream.Ending), Life: new(recovery.Life)}
		res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		if !streamed {
			if w, broken := stream.ReadWhole(res, o); broken == nil {
				_ = w.Deliver(ctx)
			}
			return
		}
		if a, broken := stream.Open(res, o); broken == nil {
			_ = a.Deliver(ctx)
			a.Discard()
		}
	}
	answer := func(streamed bool, req *transcript.Body, body string) { serve(stream.Chat{}, streamed, req, body) }
	const begin, finish = `{"id":"x","choices":[{"index":0,"`, `,"finish_reason":null}]}`
	for _, at := range []struct{ name, open, close string }{
		{"text", `{"content":`, `}`}, {"reasoning", `{"reasoning_content":`, `}`},
		{"arguments", `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"bash","arguments":`, `}}]}`},
	} {
		for what, req := range map[string]*transcript.Body{"": tools, " without tools": plain} {
			event := func(value string) string {
				return "data: " + begin + `delta":` + at.open + value + at.close + finish + "\n\n"
			}
			const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
			if req == plain && at.name != "text" {
				continue // nothing of it is held
			}
			add("stream: "+at.name+what, texts, func(input string) { answer(true, req, event(string(transcript.String(input)))+end) })
			add("stream: raw "+at.name+what, texts, func(input string) { answer(true, req, event(input)+end) })
			add("stream: pieces of "+at.name+what, texts, func(input string) {
				var b strings.Builder
				for i := 0; i < len(input); i += 16 {
					b.WriteString(event(string(transcript.String(input[i:min(len(input), i+16)]))))
				}
				answer(true, req, b.String()+end)
			})
			add("whole: "+at.name+what, texts, func(input string) {
				answer(false, req, begin+`message":`+at.open+string(transcript.String(input))+at.close+finish)
			})
			add("whole: raw "+at.name+what, texts, func(input string) { answer(false, req, begin+`message":`+at.open+input+at.close+finish) })
		}
	}
	add("stream", texts, func(input string) { answer(true, tools, input) })
	for name, delta := range map[string][2]string{"text": {`{"type":"text","text":""}`, `"text_delta","text"`},
		"arguments": {`{"type":"tool_use","id":"a","name":"bash","input":{}}`, `"input_json_delta","partial_json"`}} {
		message := func(piece string) {
			event := func(data string) string { return "data: " + data + "\n\n" }
			serve(stream.Messages{}, true, tools, event(`{"type":"message_start","message":{"id":"m"}}`)+event(`{"type":"content_block_start","index":0,"content_block":`+delta[0]+`}`)+
				event(`{"type":"content_block_delta","index":0,"delta":{"type":`+delta[1]+`:`+piece+`}}`)+event(`{"type":"content_block_stop","index":0}`)+
				event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`)+event(`{"type":"message_stop"}`))
		}
		add("messages: "+name, texts, func(input string) { message(string(transcript.String(input))) })
		add("messages: raw "+name, texts, message)
	}
	add("messages", texts, func(input string) { serve(stream.Messages{}, true, tools, input) })
	add("messages: whole", texts, func(input string) { serve(stream.Messages{}, false, tools, input) })
	for name, answers := range map[string]func(input string) []string{
		"stream":  func(input string) []string { return []string{input} },
		"begun":   func(input string) []string { return []string{input, ""} },
		"goes on": func(input string) []string { return []string{"", input} },
	} {
		all = append(all, reader{"responses: " + name, hostiletest.Items(), func(input string) func() {
			return func() { items(mender, answers(input)) }
		}, smallBody / 2})
	}
	add("whole", texts, func(input string) { answer(false, tools, input) })
	return all
}

// items serves a response with some events and then a text, which breaks off; and
// goes on with another one.
func items(mender recovery.Mender, answers []string) {
	const (
		begin = `data: {"type":"response.created","response":{"id":"resp_1"}}` + "\n\n"
		text  = `data: {"type":"response.output_item.added","output_index":%,"item":{"id":"m","type":"message","role":"assistant","content":[]}}` + "\n\n" +
			`data: {"type":"response.output_text.delta","item_id":"m","output_index":%,"content_index":0,"delta":"some words"}` + "\n\n"
		end = `data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}` + "\n\n"
	)
	req, _ := transcript.Parse([]byte(`{"model":"m","input":"x","tools":[{"type":"function","name":"bash","parameters":{"type":"object"}}]}`), transcript.Responses, transcript.Limits{})
	cfg := stream.Defaults()
	sink := stream.NewSink(httptest.NewRecorder(), cfg)
	for n, input := range answers {
		ctx, cancel := context.WithCancelCause(context.Background())
		o := stream.Options{Config: cfg, Format: stream.Responses{}, Sink: sink, Mender: mender, Request: req, Choices: 1, Started: time.Now(), Cancel: cancel,
			Ending: new(stream.Ending), Life: new(recovery.Life)}
		if n > 0 {
			o.Resume = &recovery.Resume{Sent: sink.Sent(), Way: recovery.WayReplay}
		}
		index := min(1, strings.Count(input, "output_item.added"))
		body := begin + input + strings.ReplaceAll(text, "%", strconv.Itoa(index))
		if n+1 == len(answers) {
			body += end
		}
		res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}
		if a, broken := stream.Open(res, o); broken == nil {
			_ = a.Deliver(ctx)
			a.Discard()
		}
		cancel(nil)
	}
}

// The environment of a run that is counted.
const sizeEnv = "REBOUND_HOSTILE_SIZE"

// TestReaders: nothing hostile makes a reader panic or hang.
func TestReaders(t *testing.T) {
	size, err := strconv.Atoi(os.Getenv(sizeEnv))
	if err != nil {
		size = 4 << 10
	}
	for _, r := range readers() {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.families {
				if work := r.make(f.Make(size)); work != nil {
					work()
				}
			}
		})
	}
}

// counted are the packages whose work TestWorkIsLinear counts.
var counted = []string{
	"proxy/coding", "proxy/stream", "proxy/redact", "recovery/classify", "recovery/conform", "recovery/repair", "recovery/rule", "recovery/session", "recovery/transcript",
}

// TestWorkIsLinear counts how often each block of code runs, with the counters that
// measure coverage: for eight times the input at most 24 times as often, and some times
// for each byte where something begins at a size. Time says nothing on a busy machine.
func TestWorkIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("builds itself with counters and reads large inputs")
	}
	const times = 8
	dir := t.TempDir()
	var pkgs []string
	for _, p := range counted {
		pkgs = append(pkgs, "github.com/rebound-llm/rebound/"+p)
	}
	program := filepath.Join(dir, "counted.test")
	if out, err := exec.Command("go", "test", "-c", "-covermode=count", "-coverpkg="+strings.Join(pkgs, ","), "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(t *testing.T, name string, size int) map[string]int {
		profile := filepath.Join(t.TempDir(), "profile")
		cmd := exec.Command(program, "-test.run", "^TestReaders$/^"+regexp.QuoteMeta(strings.ReplaceAll(name, " ", "_"))+"$", "-test.coverprofile", profile)
		cmd.Env = append(os.Environ(), sizeEnv+"="+strconv.Itoa(size))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 { // place, statements, count
				n, _ := strconv.Atoi(f[2])
				counts[f[0]] = max(counts[f[0]], n)
			}
		}
		return counts
	}
	for _, r := range readers() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			few, many := run(t, r.name, r.small), run(t, r.name, times*r.small)
			if len(few) == 0 {
				t.Fatal("nothing was counted")
			}
			for place, n := range many {
				if n > 3*times*few[place]+4*times*r.small {
					t.Errorf("%s ran %d times for %d times the input of %d", place, n, times, few[place])
				}
			}
		})
	}
}

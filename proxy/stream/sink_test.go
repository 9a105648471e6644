package stream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

const comment = ": keep-alive\n"

// comments says when comments were written.
func (c *client) comments(from time.Time) (at []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.writes {
		if w == comment {
			at = append(at, c.at[i].Sub(from))
		}
	}
	return at
}

func seconds(n ...int) (out []time.Duration) {
	for _, n := range n {
		out = append(out, time.Duration(n)*time.Second)
	}
	return out
}

func TestKeepAlive(t *testing.T) {
	if c := Defaults(); c.KeepAliveAfter != 15*time.Second || c.KeepAliveEvery != 15*time.Second {
		t.Errorf("the first comment comes after %v, the next after %v", c.KeepAliveAfter, c.KeepAliveEvery)
	}
	later := func(c *Config) { c.KeepAliveAfter = 30 * time.Second }
	t.Run("before an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x, begin := newExchange(later), time.Now()
			x.sink.KeepAwake(http.Header{"X-Session": {"s"}}, true)
			time.Sleep(29 * time.Second)
			synctest.Wait()
			if x.status != 0 || x.sink.Committed() {
				t.Error("committed too early")
			}
			time.Sleep(47 * time.Second)
			synctest.Wait()
			if x.status != 200 || x.header.Get("X-Session") != "s" || !strings.HasPrefix(x.header.Get("Content-Type"), "text/event-stream") ||
				x.sink.Released() != recovery.ReleasedNothing || x.flushes != 4 {
				t.Errorf("status %d, %v, %d flushes", x.status, x.header, x.flushes)
			}
			if broken := x.serve(strings.NewReader(one.answer("a b"))); broken != nil {
				t.Errorf("%+v", broken)
			}
			x.sink.Close()
			time.Sleep(time.Hour)
			synctest.Wait()
			if got, want := x.comments(begin), seconds(30, 45, 60, 75); !slices.Equal(got, want) {
				t.Errorf("comments at %v, want %v", got, want)
			}
			if x.got() != strings.Repeat(comment, 4)+one.answer("a b") {
				t.Errorf("%q", x.got())
			}
			if wrong := x.read().whole("a b"); wrong != "" {
				t.Error(wrong)
			}
		})
	})
	t.Run("within an answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x, begin := newExchange(later, func(c *Config) { c.Idle, c.IdlePinged = time.Hour, time.Hour }), time.Now()
			x.sink.KeepAwake(nil, true)
			u := play(false, nil, step{10 * time.Second, one.role() + one.text("a ")}, step{29 * time.Second, one.text("b ")},
				step{80 * time.Second, one.text("c")}, step{20 * time.Second, one.finish("stop") + end})
			if broken := x.deliver(t, u, nil); broken != nil {
				t.Errorf("%+v", broken)
			}
			x.sink.Close()
			if got, want := x.comments(begin), seconds(69, 84, 99, 114); !slices.Equal(got, want) {
				t.Errorf("comments at %v, want %v", got, want)
			}
			if wrong := x.read().whole("a b c"); wrong != "" {
				t.Error(wrong)
			}
		})
	})
	t.Run("closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newExchange()
			x.sink.KeepAwake(nil, true)
			x.sink.Close()
			time.Sleep(time.Hour)
			synctest.Wait()
			if x.got() != "" || x.status != 0 {
				t.Errorf("status %d, %q", x.status, x.got())
			}
		})
	})
	t.Run("off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newExchange(func(c *Config) { c.KeepAliveAfter = 0 })
			x.sink.KeepAwake(nil, true)
			time.Sleep(time.Hour)
			synctest.Wait()
			if x.got() != "" {
				t.Errorf("%q", x.got())
			}
		})
	})
	t.Run("client gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x, gone := newExchange(), errors.New("gone")
			x.fails = gone
			x.sink.KeepAwake(nil, true)
			time.Sleep(time.Hour)
			synctest.Wait()
			if err := x.sink.Write(Piece{Bytes: []byte(end)}); !errors.Is(err, gone) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("what is passed on unread", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newExchange()
			x.sink.KeepAwake(nil, true)
			defer x.sink.Close()
			body := one.answer("a")
			u := play(false, nil, step{0, body[:50]}, step{100 * time.Second, body[50:]})
			if broken := Raw(respond(u), x.options()).Deliver(t.Context()); broken != nil {
				t.Errorf("%+v", broken)
			}
			if x.got() != body {
				t.Errorf("a comment within an event: %q", x.got())
			}
		})
	})
}

func TestSinkFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, begin := newExchange(), time.Now()
		x.sink.KeepAwake(nil, true)
		defer x.sink.Close()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if x.sink.FirstByte(begin) != 0 {
			t.Error("a comment is no answer")
		}
		_ = x.sink.Write(Piece{Bytes: []byte("data: a\n\n"), Released: recovery.ReleasedText, Text: "a"})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := x.sink.FirstByte(begin); got != 40*time.Second {
			t.Errorf("%v", got)
		}
	})
}

func TestErrorEvent(t *testing.T) {
	if got := string(End(Chat{}, []byte("{\n  \"error\": {\"message\": \"a b\"}\n}"), nil)); got != `data: {"error":{"message":"a b"}}`+"\n\n" {
		t.Errorf("%q", got)
	}
	got, err := readAll(strings.NewReader(string(End(Chat{}, []byte("<html>\n\n"), nil))), 1<<20)
	if len(got) != 1 || delta(got[0].data).Kind != KindError || !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestConfig(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	for key, change := range map[string]func(*Config){
		"mid_stream:":      func(c *Config) { c.MidStream = "resume" },
		"keepalive_every:": func(c *Config) { c.KeepAliveEvery = 0 },
		"idle:":            func(c *Config) { c.IdlePinged = c.Idle - 1 },
		"max_event:":       func(c *Config) { c.MaxEvent = 1000 },
	} {
		c := Defaults()
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), key) {
			t.Errorf("%s %v", key, err)
		}
	}
	c := Defaults()
	c.KeepAliveAfter, c.KeepAliveEvery = 0, 0
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestReadWhole: answers that are no streams are checked before the client sees them.
func TestReadWhole(t *testing.T) {
	good := ` {"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}` + "\n"
	empty := `{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`
	cases := []struct {
		name, body string
		err        error
		event      string
		empty, ok  bool
		accept     bool
	}{
		{name: "answer", body: good, ok: true},
		{name: "empty because of its length", body: strings.Replace(empty, "stop", "length", 1), ok: true},
		{name: "empty", body: empty, empty: true},
		{name: "empty, accepted", body: empty, ok: true, accept: true},
		{name: "nothing", body: "", err: io.ErrUnexpectedEOF, empty: true},
		{name: "half", body: good[:30], err: ErrInvalid, event: strings.TrimSpace(good[:30])},
		{name: "error", body: failed[6 : len(failed)-2], event: failed[6 : len(failed)-2]},
		{name: "too long", body: strings.Repeat(" ", 2000), err: ErrAnswerTooLong},
	}
	for _, c := range cases {
		x := newExchange(func(cfg *Config) { cfg.MaxAnswer = 1500 })
		w, broken := ReadWhole(respond(strings.NewReader(c.body)), x.options(func(o *Options) { o.AcceptEmpty = c.accept }))
		if c.ok {
			if broken != nil {
				t.Errorf("%s: %+v", c.name, broken)
				continue
			}
			usage, _ := w.Usage()
			if broken := w.Deliver(t.Context()); broken != nil || x.got() != c.body || x.sink.Released() != recovery.ReleasedCall || c.body == good && usage.Input != 3 {
				t.Errorf("%s: %+v, %q, %+v", c.name, broken, x.got(), usage)
			}
			continue
		}
		if broken == nil || !errors.Is(broken.Err, c.err) || string(broken.Event) != c.event || broken.Empty != c.empty || x.got() != "" || x.status != 0 {
			t.Errorf("%s: %+v, %q", c.name, broken, x.got())
		}
	}
}

// A failure before any event is that of a response which began: SDKs take no other
// event for the first.
func TestResponseFailsFromTheStart(t *testing.T) {
	s := NewSink(httptest.NewRecorder(), Defaults())
	defer s.Close()
	got := string(End(Responses{}, []byte(`{"error":{"message":"busy","code":"slow_down"}}`), s))
	at := 0
	for i, kind := range []string{"response.created", "response.failed", "error"} {
		next := strings.Index(got[at:], "event: "+kind+"\n")
		if next < 0 || !strings.Contains(got[at+next:], `"sequence_number":`+strconv.Itoa(i)+"}") {
			t.Fatalf("%s is not the event %d: %s", kind, i, got)
		}
		at += next
	}
}

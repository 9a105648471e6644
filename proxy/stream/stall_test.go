package stream

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// wire is an upstream's connection. Steps are written as they are due.
type wire struct {
	*io.PipeReader
	w      *io.PipeWriter
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	ended  bool
	cause  error // why it was cancelled
}

// step is what is sent after a pause.
type step struct {
	pause time.Duration
	text  string
}

// play sends the steps; then it leaves the connection open, or ends it with err.
func play(open bool, err error, steps ...step) *wire {
	u := &wire{closed: make(chan struct{})}
	u.PipeReader, u.w = io.Pipe()
	go func() {
		for _, s := range steps {
			select {
			case <-time.After(s.pause):
			case <-u.closed:
				return
			}
			if _, err := u.w.Write([]byte(s.text)); err != nil {
				return
			}
		}
		if !open {
			_ = u.w.CloseWithError(err)
		}
	}()
	return u
}

// Close ends the connection from the gateway's side.
func (u *wire) Close() error {
	u.once.Do(func() { close(u.closed) })
	return u.PipeReader.Close()
}

func (u *wire) cancel(cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.ended, u.cause = true, cause
	}
	_ = u.w.CloseWithError(cause)
}

// deliver opens the answer and delivers it.
func (x *exchange) deliver(t *testing.T, u *wire, stalled rescuer, change ...func(*Options)) *Broken {
	t.Helper()
	a, broken := Open(respond(u), x.options(append(change, func(o *Options) { o.Cancel = u.cancel })...))
	if broken != nil {
		t.Fatalf("it did not open: %+v", broken)
	}
	return looked(t.Context(), a, stalled)
}

// rescuer is told of a pause.
type rescuer func(ctx context.Context, sent string, take func() bool)

// looked delivers an answer under a watch for pauses, as the engine does.
func looked(ctx context.Context, a *Answer, stalled rescuer) *Broken {
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() {
		p, again := a.Paused(ctx)
		if p != nil {
			if stalled != nil {
				stalled(p.Context, p.Sent, p.Replace)
			}
			p.Done()
		}
		if again > 0 {
			timer.Reset(again)
		}
	})
	if _, first := a.Paused(ctx); first == 0 || !timer.Reset(first) {
		timer.Stop()
	}
	defer timer.Stop()
	return a.Deliver(ctx)
}

// pauses counts how often it is told of a pause, and waits until that is over.
type pauses struct {
	at   []time.Duration
	sent []string
	over []time.Duration
	from time.Time
}

func (p *pauses) wait(ctx context.Context, sent string, take func() bool) {
	p.at, p.sent = append(p.at, time.Since(p.from)), append(p.sent, sent)
	<-ctx.Done()
	p.over = append(p.over, time.Since(p.from))
	if take() {
		panic("taken, though it went on")
	}
}

func (p *pauses) giveUp(_ context.Context, sent string, _ func() bool) {
	p.at, p.sent = append(p.at, time.Since(p.from)), append(p.sent, sent)
}

func between(d, from, to time.Duration) bool { return d >= from && d <= to }

func TestStallGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, p := newExchange(), &pauses{from: time.Now()}
		u := play(false, nil, step{0, one.role() + one.text("a ")}, step{19 * time.Second, one.text("b ")}, step{40 * time.Second, one.text("c ")},
			step{30 * time.Second, one.text("d") + one.finish("stop") + end})
		if broken := x.deliver(t, u, p.wait); broken != nil {
			t.Fatalf("%+v", broken)
		}
		if len(p.at) != 2 || p.sent[0] != "a b " || p.sent[1] != "a b c " || u.cause != nil {
			t.Fatalf("pauses at %v with %q, cancelled: %v", p.at, p.sent, u.cause)
		}
		if !between(p.at[0], 39*time.Second, 42*time.Second) || p.over[0] != 59*time.Second ||
			!between(p.at[1], 79*time.Second, 82*time.Second) || p.over[1] != 89*time.Second {
			t.Errorf("pauses from %v to %v", p.at, p.over)
		}
		if wrong := x.read().whole("a b c d"); wrong != "" {
			t.Error(wrong)
		}
	})
}

// snapping is a connection that breaks the gateway where it should end.
type snapping struct{ io.Reader }

func (r snapping) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		panic("no such byte")
	}
	return n, nil
}

// A delivery that breaks is no longer watched: nothing rescues it afterwards.
func TestStallPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, p := newExchange(), &pauses{from: time.Now()}
		a, broken := Open(respond(snapping{strings.NewReader(one.role() + one.text("a "))}), x.options())
		if broken != nil {
			t.Fatalf("it did not open: %+v", broken)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not break")
				}
			}()
			looked(t.Context(), a, p.giveUp)
		}()
		time.Sleep(time.Hour)
		if len(p.at) != 0 {
			t.Errorf("told of pauses at %v", p.at)
		}
	})
}

func TestStallTaken(t *testing.T) {
	for name, late := range map[string]time.Duration{"silent for good": time.Hour, "goes on later": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, begin := newExchange(), time.Now()
				u := play(false, nil, step{0, one.role() + one.text("a ")}, step{late, one.text("b")})
				var took, again bool
				broken := x.deliver(t, u, func(ctx context.Context, sent string, take func() bool) {
					time.Sleep(3 * time.Second)
					took, again = take(), take()
				})
				if broken == nil || !errors.Is(broken.Err, ErrTaken) || !broken.Stalled || broken.Client || !took || again {
					t.Fatalf("%+v, taken %v, and again %v", broken, took, again)
				}
				if !errors.Is(u.cause, ErrTaken) || !between(time.Since(begin), 23*time.Second, 26*time.Second) {
					t.Errorf("cancelled with %v after %v", u.cause, time.Since(begin))
				}
				if got := x.read(); got.text != "a " || got.dones != 0 {
					t.Errorf("%+v", got)
				}
				if broken := x.serve(strings.NewReader(two.answer("a b c")), resume("a ", false)); broken != nil {
					t.Fatalf("%+v", broken)
				}
				if wrong := x.read().whole("a b c"); wrong != "" {
					t.Error(wrong)
				}
			})
		})
	}
}

func TestStallSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, p := newExchange(), &pauses{from: time.Now()}
		u := play(true, nil, step{0, one.role() + one.text("a ")})
		broken := x.deliver(t, u, p.giveUp)
		if broken == nil || !errors.Is(broken.Err, ErrStalled) || !broken.Stalled || !errors.Is(u.cause, ErrStalled) {
			t.Fatalf("%+v, cancelled with %v", broken, u.cause)
		}
		if len(p.at) != 1 || !between(p.at[0], 20*time.Second, 23*time.Second) {
			t.Errorf("pauses at %v", p.at)
		}
		if !between(time.Since(p.from), 120*time.Second, 123*time.Second) {
			t.Errorf("given up after %v", time.Since(p.from))
		}
		if x.read().dones != 0 {
			t.Error("it looks like an end")
		}
	})
}

// An answer whose continuation was refused is waited for half a minute if it is wholly
// silent; one that shows life, or goes on, is not ended for that.
func TestStallRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
		ends  time.Duration // zero: it is complete
	}{
		{"silent", nil, 30 * time.Second},
		{"pings", []step{{25 * time.Second, ping}, {25 * time.Second, ping}, {25 * time.Second, one.text("b") + one.finish("stop") + end}}, 0},
		{"goes on", []step{{28 * time.Second, one.text("b")}, {60 * time.Second, one.finish("stop") + end}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, begin := newExchange(), time.Now()
				u := play(true, nil, append([]step{{0, one.role() + one.text("a ")}}, c.steps...)...)
				a, broken := Open(respond(u), x.options(func(o *Options) { o.Cancel = u.cancel }))
				if broken != nil {
					t.Fatalf("it did not open: %+v", broken)
				}
				refused := 0
				var timer *time.Timer
				timer = time.AfterFunc(time.Second, func() {
					p, again := a.Paused(t.Context())
					if p != nil {
						if refused++; refused == 1 {
							p.Refused()
						}
						p.Done()
					}
					if again > 0 {
						timer.Reset(again)
					}
				})
				defer timer.Stop()
				broken = a.Deliver(t.Context())
				switch took := time.Since(begin); {
				case c.ends == 0 && broken != nil:
					t.Errorf("%+v after %v", broken, took)
				case c.ends > 0 && (broken == nil || !errors.Is(broken.Err, ErrStalled) || !between(took, c.ends, c.ends+3*time.Second)):
					t.Errorf("%+v after %v", broken, took)
				case refused == 0:
					t.Error("no pause was seen")
				}
			})
		})
	}
}

// TestStallPinged: pings prolong a pause, but not for ever.
func TestStallPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, p := newExchange(), &pauses{from: time.Now()}
		steps := []step{{0, one.role() + one.text("a ")}}
		for range 200 {
			steps = append(steps, step{5 * time.Second, ping})
		}
		broken := x.deliver(t, play(true, nil, steps...), p.giveUp)
		if broken == nil || !errors.Is(broken.Err, ErrStalled) || !broken.Stalled {
			t.Fatalf("%+v", broken)
		}
		if len(p.at) != 1 || !between(p.at[0], 120*time.Second, 123*time.Second) {
			t.Errorf("pauses at %v", p.at)
		}
		if !between(time.Since(p.from), 600*time.Second, 603*time.Second) {
			t.Errorf("given up after %v", time.Since(p.from))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x, p := newExchange(), &pauses{from: time.Now()}
		steps := []step{{0, one.role() + one.text("a ")}}
		for range 20 {
			steps = append(steps, step{5 * time.Second, ping})
		}
		steps = append(steps, step{5 * time.Second, one.text("b") + one.finish("stop") + end})
		if broken := x.deliver(t, play(false, nil, steps...), p.wait); broken != nil || len(p.at) != 0 {
			t.Errorf("%+v, pauses at %v", broken, p.at)
		}
	})
}

// TestStallBreaks: a paused stream that breaks waits for the one that may take over.
func TestStallBreaks(t *testing.T) {
	reset := errors.New("reset")
	for _, takes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			x, begin := newExchange(), time.Now()
			u := play(false, reset, step{0, one.role() + one.text("a ")}, step{30 * time.Second, ping})
			broken := x.deliver(t, u, func(_ context.Context, _ string, take func() bool) {
				time.Sleep(20 * time.Second)
				if takes && !take() {
					t.Error("not to be taken")
				}
			})
			want := reset
			if takes {
				want = ErrTaken
			}
			if broken == nil || !errors.Is(broken.Err, want) || broken.Stalled != takes || !between(time.Since(begin), 40*time.Second, 43*time.Second) {
				t.Errorf("%+v after %v", broken, time.Since(begin))
			}
		})
	}
}

// TestStallNothingToContinue: what cannot be continued is waited for.
func TestStallNothingToContinue(t *testing.T) {
	for name, event := range map[string]string{"reasoning": one.reason("hm"), "call": one.text("a") + one.call(), "policy": one.text("a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange(func(c *Config) {
					if name == "policy" {
						c.MidStream = MidStreamError
					}
				})
				p := &pauses{from: time.Now()}
				u := play(false, nil, step{0, one.role() + event}, step{100 * time.Second, one.text("b") + one.finish("stop") + end})
				if broken := x.deliver(t, u, p.wait); broken != nil || len(p.at) != 0 {
					t.Errorf("%+v, pauses at %v", broken, p.at)
				}
				if broken := newExchange().deliver(t, play(false, nil, step{0, one.text("a")}, step{100 * time.Second, one.finish("stop") + end}), nil); broken != nil {
					t.Errorf("nobody to tell: %+v", broken)
				}
			})
		})
	}
}

// TestStallHeld: what nothing is shown of is given up after a pause, so that
// another attempt can begin unseen: at once where text was to follow, later where
// the arguments of a call are, or where it only reasoned.
func TestStallHeld(t *testing.T) {
	for name, c := range map[string]struct {
		event string
		from  time.Duration
		set   func(*Config)
		more  func(*Options)
	}{
		"buffered text":      {one.text("a "), 20 * time.Second, func(c *Config) { c.MidStream = MidStreamBuffer }, nil},
		"buffered reasoning": {one.reason("hm"), 120 * time.Second, func(c *Config) { c.MidStream = MidStreamBuffer }, nil},
		"replay":             {two.text("It is "), 20 * time.Second, nil, resume("It is a fine day", false)},
		"prefill":            {two.text("It is a fine d"), 20 * time.Second, nil, resume("It is a fine day", true)},
		"call, begun":        {one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"path\": \"/sr"}}`), 20 * time.Second, nil, mended(t, judging(nil))},
		"call":               {one.calls(`{"index":0,"id":"a","function":{"name":"ls","arguments":""}}`), 120 * time.Second, nil, mended(t, judging(nil))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, begin := newExchange(func(cfg *Config) {
					if c.set != nil {
						c.set(cfg)
					}
				}), time.Now()
				if name == "replay" || name == "prefill" {
					x.sink.Begin(200, nil)
					_ = x.sink.Write(Piece{Released: recovery.ReleasedText, Text: "It is a fine day"})
				}
				u := play(true, nil, step{0, one.role() + c.event})
				var life recovery.Life
				_, broken := Open(respond(u), x.options(func(o *Options) {
					o.Cancel, o.Life = u.cancel, &life
					if c.more != nil {
						c.more(o)
					}
				}))
				if broken == nil || !broken.Stalled || !errors.Is(u.cause, ErrStalled) || life.Sign() != recovery.SignWrites || x.got() != "" {
					t.Fatalf("%+v, cancelled with %v, began %v", broken, u.cause, life.Sign())
				}
				if took := time.Since(begin); !between(took, c.from, c.from+3*time.Second) {
					t.Errorf("given up after %v", took)
				}
			})
		})
	}
}

// TestNoEndMark: a finished stream that stays open without an end mark is
// ended soon, whatever pings come, and nobody is called to continue it.
func TestNoEndMark(t *testing.T) {
	pings := func(n int) (out []step) {
		for range n {
			out = append(out, step{time.Second, ping})
		}
		return out
	}
	for name, c := range map[string]struct {
		after []step
		soon  time.Duration
		idle  time.Duration
		mid   MidStream
	}{
		"silent":        {nil, 2 * time.Second, 20 * time.Second, MidStreamContinue},
		"usage":         {[]step{{time.Second, one.usage()}}, 3 * time.Second, 20 * time.Second, MidStreamContinue},
		"pings":         {pings(100), 2 * time.Second, 20 * time.Second, MidStreamContinue},
		"short idle":    {nil, 2 * time.Second, 500 * time.Millisecond, MidStreamContinue},
		"buffer":        {nil, 2 * time.Second, 20 * time.Second, MidStreamBuffer},
		"buffer, pings": {pings(100), 2 * time.Second, 20 * time.Second, MidStreamBuffer},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange(func(cfg *Config) { cfg.Idle, cfg.MidStream = c.idle, c.mid })
				p := &pauses{from: time.Now()}
				u := play(true, nil, append([]step{{0, one.role() + one.text("a")}, {0, one.finish("stop")}}, c.after...)...)
				broken := x.deliver(t, u, p.giveUp)
				if broken != nil || len(p.at) != 0 {
					t.Errorf("%+v, pauses at %v", broken, p.at)
				}
				if took := time.Since(p.from); !between(took, c.soon, c.soon+200*time.Millisecond) {
					t.Errorf("it took %v", took)
				}
				if wrong := x.read().whole("a"); wrong != "" {
					t.Errorf("%s: %q", wrong, x.got())
				}
			})
		})
	}
}

// TestSlowEveryFinish: a finish reason on every chunk is no end while more comes.
func TestSlowEveryFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange()
		steps := []step{{0, one.role()}}
		for range 10 {
			steps = append(steps, step{1900 * time.Millisecond, one.chunk(`{"content":"a"}`, "stop")})
		}
		if broken := x.deliver(t, play(true, nil, steps...), nil); broken != nil {
			t.Fatalf("%+v", broken)
		}
		if wrong := x.read().whole("aaaaaaaaaa"); wrong != "" {
			t.Error(wrong)
		}
	})
}

// TestEndMarkOpen: after the end mark the connection is not waited for.
func TestEndMarkOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, begin := newExchange(), time.Now()
		if broken := x.deliver(t, play(true, nil, step{0, one.answer("a")}), nil); broken != nil {
			t.Fatalf("%+v", broken)
		}
		if took := time.Since(begin); took > drainFor {
			t.Errorf("it took %v", took)
		}
	})
}

// TestStallOfTheClient: time that a write to the client takes is no pause of
// the upstream.
func TestStallOfTheClient(t *testing.T) {
	for _, slow := range []time.Duration{50 * time.Second, 200 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			x, p := newExchange(), &pauses{from: time.Now()}
			x.blocks, x.entered = make(chan struct{}), make(chan struct{})
			go func() {
				for range x.entered {
					time.Sleep(slow)
					x.blocks <- struct{}{}
				}
			}()
			u := play(false, nil, step{0, one.role() + one.text("a ")}, step{time.Second, one.text("b ")}, step{slow + 10*time.Second, one.text("c")}, step{15 * time.Second, one.finish("stop") + end})
			broken := x.deliver(t, u, p.giveUp)
			close(x.entered)
			if broken != nil || len(p.at) != 0 {
				t.Errorf("client slow by %v: %+v, pauses at %v", slow, broken, p.at)
			}
		})
	}
}

// TestIdleOfTarget: the pauses that a target makes decide how long an answer of it may pause.
func TestIdleOfTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, begin := newExchange(), time.Now()
		u := play(true, nil, step{0, one.role() + one.words("It is ")}, step{3 * time.Second, one.words("a fine day")})
		a, broken := Open(respond(u), x.options(func(o *Options) { o.Cancel, o.Idle = u.cancel, 8*time.Second }))
		if broken != nil {
			t.Fatal(broken)
		}
		var told time.Duration
		broken = looked(t.Context(), a, func(_ context.Context, _ string, take func() bool) {
			told = time.Since(begin)
			take()
		})
		if broken == nil || !broken.Stalled || !between(told, 11*time.Second, 13*time.Second) || a.LongestPause() != 3*time.Second {
			t.Errorf("%+v, told after %v, the longest pause was %v", broken, told, a.LongestPause())
		}
	})
}

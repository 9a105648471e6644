package stream

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// TestUsageThenMore: usage without a choice may be the end; if more follows it was not, and pauses
// after that are pauses of an answer that goes on.
func TestUsageThenMore(t *testing.T) {
	for name, m := range map[string]recovery.Mender{"delivered": nil, "held": judging(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange()
				pause := 3 * time.Second
				more := one.text(" b")
				if m != nil {
					more = one.call()
				}
				u := play(false, nil, step{0, one.role() + one.text("a")}, step{time.Second, one.usage()}, step{time.Second, more},
					step{pause, one.usage()}, step{time.Second, more}, step{pause, one.finish("stop") + end})
				change := []func(*Options){func(o *Options) { o.Cancel = u.cancel }}
				if m != nil {
					change = append(change, mended(t, m))
				}
				if broken := x.serve(u, change...); broken != nil || u.cause != nil {
					t.Errorf("%+v, cancelled: %v, %s", broken, u.cause, x.got())
				}
			})
		})
	}
}

// TestFinishOnEveryChunk: a target that gives a finish reason with every chunk may pause between them
// as any other may.
func TestFinishOnEveryChunk(t *testing.T) {
	for name, m := range map[string]recovery.Mender{"delivered": nil, "held": judging(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange()
				steps := []step{{0, one.role()}}
				for range 3 {
					steps = append(steps, step{5 * time.Second, one.chunk(`{"content":"a"}`, "stop")})
				}
				u := play(true, nil, steps...)
				change := []func(*Options){func(o *Options) { o.Cancel = u.cancel }}
				if m != nil {
					change = append(change, mended(t, m))
				}
				if broken := x.serve(u, change...); broken != nil {
					t.Fatalf("%+v", broken)
				}
				if wrong := x.read().whole("aaa"); wrong != "" {
					t.Error(wrong)
				}
			})
		})
	}
}

// TestFinishBeforeContent: a finish reason that comes first is no end as long as an answer may pause. Open WebUI sends one with the
// first chunk of a model that reasons.
func TestFinishBeforeContent(t *testing.T) {
	early := one.chunk(`{"role":"assistant","content":""}`, "stop")
	for name, c := range map[string]struct {
		m    recovery.Mender
		more string
	}{"text": {nil, one.text("a")}, "held": {judging(nil), one.text("a") + one.call()}, "nothing": {}, "nothing is held": {judging(nil), ""}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange()
				steps := []step{{0, early}}
				if c.more != "" {
					steps = append(steps, step{5 * time.Second, c.more}, step{0, one.finish("stop") + end})
				}
				u := play(true, nil, steps...)
				change := []func(*Options){func(o *Options) { o.Cancel = u.cancel }}
				if c.m != nil {
					change = append(change, mended(t, c.m))
				}
				began := time.Now()
				switch broken := x.serve(u, change...); {
				case c.more != "" && (broken != nil || x.got() != early+c.more+one.finish("stop")+end):
					t.Errorf("%+v, %s", broken, x.got())
				case c.more == "" && (broken == nil || !broken.Empty || time.Since(began) > time.Minute):
					t.Errorf("%+v after %v", broken, time.Since(began))
				}
			})
		})
	}
}

type censor struct{}

func (censor) Bytes(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("secret"), []byte("xxx"))
}

// TestFailureOnEveryChunk: where a finish reason comes with every chunk, an error or a truncated chunk reaches the client, who would take
// the text before it for the whole answer.
func TestFailureOnEveryChunk(t *testing.T) {
	said := one.role() + one.chunk(`{"content":"a"}`, "stop") + one.chunk(`{"content":"b"}`, "stop")
	for _, failure := range []string{failed, "data: {\"error\":{\"message\":\"secret\"}}\n\n", half} {
		for _, held := range []bool{false, true} {
			x := newExchange()
			change := []func(*Options){func(o *Options) { o.Secrets = censor{} }}
			if held {
				change = append(change, mended(t, judging(nil)))
			}
			broken := x.serve(strings.NewReader(said+failure+end), change...)
			if want := said + strings.ReplaceAll(failure, "secret", "xxx") + end; broken != nil || x.got() != want {
				t.Errorf("held %t: %+v\n%s", held, broken, x.got())
			}
		}
	}
}

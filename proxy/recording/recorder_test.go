package recording_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

const key = "a key for recordings of this test"

func config(change func(*recording.Config)) recording.Config {
	c := recording.Defaults()
	c.Key = key
	if change != nil {
		change(&c)
	}
	return c
}

// body is a request of n bytes.
func body(n int, text string) []byte {
	b := fmt.Appendf(nil, `{"messages":[{"role":"user","content":%q}],"pad":"`, text)
	return append(append(b, bytes.Repeat([]byte{'x'}, max(0, n-len(b)-2))...), `"}`...)
}

// one is a recording with an attempt as it came and one that was changed.
func one(id string, client, changed []byte) *recording.Recording {
	c := &recording.Recording{Request: id, Model: "m", Time: time.Now(), Client: recording.Body{Body: client}}
	c.Attempt(1, "up/m", client, true)
	c.Attempt(2, "up/m", changed, false)
	return c
}

func none(t *testing.T) func(error) {
	return func(why error) { t.Errorf("lost: %v", why) }
}

// What is kept is read back as it was, and only with the key; in the store it is
// neither text nor the same twice.
func TestKeepAndFind(t *testing.T) {
	values := memory.New(memory.Defaults())
	r := recording.New(config(nil), values, none(t))
	client, changed := body(0, "a <secret> of the client"), body(0, "a <secret> of the client, and a note")
	r.Keep(one("a", client, changed))
	r.Keep(one("b", client, changed))
	clear(client) // its memory is used for another request then
	r.Close(t.Context())

	raw, err := r.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var got recording.Recording
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Client.Body) != string(body(0, "a <secret> of the client")) || len(got.Attempts) != 2 || !got.Attempts[0].Same || got.Attempts[0].Body.Body != nil ||
		string(got.Attempts[1].Body.Body) != string(changed) || got.Attempts[1].Number != 2 {
		t.Errorf("%s", raw)
	}
	stored, err := values.Get(t.Context(), "recording/a", "recording/b")
	if err != nil {
		t.Fatal(err)
	}
	if len(stored[0]) == 0 || bytes.Contains(stored[0], []byte("secret")) || bytes.Equal(stored[0], stored[1]) {
		t.Errorf("stored: %q", stored)
	}
	// One request's recording is not another's.
	if err := values.Set(t.Context(), store.Entry{Key: "recording/c", Value: stored[0], TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{"c": recording.ErrKey, "d": recording.ErrUnknown, "": recording.ErrUnknown, strings.Repeat("x", 2000): recording.ErrUnknown} {
		if _, err := r.Find(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%.10q: %v", id, err)
		}
	}
	r.Reconfigure(config(func(c *recording.Config) { c.Key = strings.ToUpper(key) }))
	if _, err := r.Find(t.Context(), "a"); !errors.Is(err, recording.ErrKey) {
		t.Errorf("with another key: %v", err)
	}
	r.Reconfigure(recording.Defaults())
	if _, err := r.Find(t.Context(), "a"); !errors.Is(err, recording.ErrOff) {
		t.Errorf("without a key: %v", err)
	}
}

// The number, the bytes and the time of what is kept are bounded; of a body that is
// too large its size is kept.
func TestBounds(t *testing.T) {
	noise := func(n, seed int) []byte { // does not get smaller
		var b bytes.Buffer
		for x := uint32(seed + 1); b.Len() < n; x = x*1664525 + 1013904223 {
			fmt.Fprintf(&b, "%08x", x)
		}
		return body(0, b.String())
	}
	for name, c := range map[string]struct {
		change func(*recording.Config)
		size   int
		want   func(n int) bool
	}{
		"requests": {func(c *recording.Config) { c.Requests = 3 }, 10, func(n int) bool { return n == 3 }},
		"total":    {func(c *recording.Config) { c.Total = 1 << 20 }, 400 << 10, func(n int) bool { return n > 0 && n < 6 }},
	} {
		values := memory.New(memory.Defaults())
		r := recording.New(config(c.change), values, none(t))
		for i := range 10 {
			r.Keep(one(fmt.Sprint(i), noise(c.size, i), noise(c.size, 100+i)))
		}
		r.Close(t.Context())
		found, bytes := 0, 0
		for i := range 10 {
			v, err := values.Get(t.Context(), fmt.Sprint("recording/", i))
			if err != nil {
				t.Fatal(err)
			}
			if bytes += len(v[0]); v[0] != nil {
				found++
			}
		}
		if last, err := r.Find(t.Context(), "9"); !c.want(found) || err != nil || bytes > 1<<20 {
			t.Errorf("%s: %d are kept, with %d bytes; the last: %.20s %v", name, found, bytes, last, err)
		}
	}
	r := recording.New(config(func(c *recording.Config) { c.Body = 1 << 10 }), memory.New(memory.Defaults()), none(t))
	c := one("large", body(5000, ""), body(1000, ""))
	for n := range 100 {
		c.Attempt(3+n, "up/m", body(1000, ""), false)
	}
	r.Keep(c)
	r.Close(t.Context())
	raw, err := r.Find(t.Context(), "large")
	if err != nil || !strings.Contains(string(raw), `"client":{"too_large":5000}`) || strings.Count(string(raw), `"body":`) != 4 || strings.Count(string(raw), `"attempt":`) != 32 {
		t.Errorf("%v %.300s", err, raw)
	}
}

// Recordings are deleted one by one, by session and all, those of other replicas and
// those that still wait to be stored, too.
func TestDelete(t *testing.T) {
	values := memory.New(memory.Defaults())
	mine, other := recording.New(config(nil), values, none(t)), recording.New(config(nil), values, none(t))
	keep := func(r *recording.Recorder, id, session string) {
		c := one(id, body(0, ""), body(0, ""))
		c.Session = session
		r.Keep(c)
	}
	left := func(want ...string) {
		t.Helper()
		var got []string
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if _, err := mine.Find(t.Context(), id); err == nil {
				got = append(got, id)
			} else if !errors.Is(err, recording.ErrUnknown) {
				t.Error(err)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
	keep(other, "a", "s_1")
	keep(other, "b", "s_2")
	other.Close(t.Context())
	keep(mine, "c", "s_1")
	keep(mine, "d", "")
	keep(mine, "e", "s_3")
	if err := mine.Delete(t.Context(), "e"); err != nil {
		t.Error(err)
	}
	left("a", "b", "c", "d")
	for _, id := range []string{"e", "never", "", strings.Repeat("x", 2000)} {
		if err := mine.Delete(t.Context(), id); !errors.Is(err, recording.ErrUnknown) {
			t.Errorf("%.10q: %v", id, err)
		}
	}
	if n, err := mine.DeleteAll(t.Context(), "s_1"); n != 2 || err != nil {
		t.Errorf("of a session: %d, %v", n, err)
	}
	left("b", "d")
	mine.Reconfigure(recording.Defaults()) // what was recorded before is deleted, too
	if n, err := mine.DeleteAll(t.Context(), ""); n != 2 || err != nil {
		t.Errorf("all: %d, %v", n, err)
	}
	mine.Reconfigure(config(nil))
	left()
	mine.Close(t.Context())
	if _, err := mine.DeleteAll(t.Context(), ""); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recording.New(config(func(c *recording.Config) { c.TTL = time.Minute }), memory.New(memory.Defaults()), none(t))
		r.Keep(one("a", body(0, ""), body(0, "")))
		r.Close(t.Context())
		if _, err := r.Find(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute + time.Second)
		if _, err := r.Find(t.Context(), "a"); !errors.Is(err, recording.ErrUnknown) {
			t.Errorf("after its time: %v", err)
		}
	})
}

// away is a store whose server hangs.
type away struct{}

func (away) Get(ctx context.Context, _ ...string) ([][]byte, error) { return nil, away{}.wait(ctx) }
func (away) Set(ctx context.Context, _ ...store.Entry) error        { return away{}.wait(ctx) }
func (away) Delete(ctx context.Context, _ ...string) error          { return away{}.wait(ctx) }
func (away) Append(ctx context.Context, _ string, _ []byte, _ int) error {
	return away{}.wait(ctx)
}
func (away) Tail(ctx context.Context, _ string, _ int) ([][]byte, error) {
	return nil, away{}.wait(ctx)
}
func (away) wait(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
}

// A store that hangs costs recordings, which is told, and holds nobody up.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan error, 200)
		r := recording.New(config(nil), away{}, func(why error) { lost <- why })
		start := time.Now()
		large := body(1<<20, "")
		for i := range 100 { // 200 MiB, and 32 may wait
			r.Keep(one(fmt.Sprint(i), large, large))
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
		if n := len(lost); n < 80 || n > 90 {
			t.Errorf("%d are lost at once", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.Close(ctx)
		if len(lost) != 100 {
			t.Errorf("%d are reported", len(lost))
		}
		r.Keep(one("late", large, large)) // after the end: nothing
	})
}

// refusing is a store that answers at once, with an error.
type refusing struct{ away }

func (refusing) Get(context.Context, ...string) ([][]byte, error) { return nil, store.ErrUnavailable }

// A deletion reports the store's error, also if the operator stops waiting while it runs. The race detector reports a result that
// the worker still writes.
func TestDeleteWithoutStore(t *testing.T) {
	r := recording.New(config(nil), refusing{}, none(t))
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 0 {
			go cancel()
		}
		if err := r.Delete(ctx, "a"); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled) {
			t.Fatalf("deleted: %v", err)
		}
		cancel()
	}
	r.Close(t.Context())
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*recording.Config){
		"":                             nil,
		"key_env:":                     func(c *recording.Config) { c.Key = "too short" },
		"key_env: the key is easy":     func(c *recording.Config) { c.Key = strings.Repeat("r", 40) },
		"key_env: the key is easy to":  func(c *recording.Config) { c.Key = strings.Repeat("0123456789abcde", 3) },
		"key_env: the key is easy to ": func(c *recording.Config) { c.Key = "aabbccaabbbcacbabcacbbacbacbacbacbabcbacb" },
		"key_env: ":                    func(c *recording.Config) { c.KeyEnv, c.KeyFile = "A", "b" },
		"body:":                        func(c *recording.Config) { c.Body = 0 },
		"requests:":                    func(c *recording.Config) { c.Requests = 0 },
		"total:":                       func(c *recording.Config) { c.Total = 1 << 30 },
		"ttl:":                         func(c *recording.Config) { c.TTL = 0 },
	} {
		err := config(change).Validate()
		if (want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%s %v", want, err)
		}
	}
}

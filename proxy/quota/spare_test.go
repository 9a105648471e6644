package quota_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/proxy/quota"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

// late is a server that does what it is asked, but answers after a while only.
type late struct {
	store.Store
	mu    sync.Mutex
	after time.Duration
	work  sync.WaitGroup
}

func (l *late) Charge(ctx context.Context, charges ...store.Charge) (store.Charged, error) {
	l.mu.Lock()
	after := l.after
	l.mu.Unlock()
	if after == 0 {
		return l.Store.Charge(ctx, charges...)
	}
	l.work.Go(func() {
		time.Sleep(after / 2)
		_, _ = l.Store.Charge(context.Background(), charges...)
	})
	select {
	case <-time.After(after):
		return store.Charged{}, context.DeadlineExceeded
	case <-ctx.Done():
		return store.Charged{}, ctx.Err()
	}
}

func (l *late) Ping(ctx context.Context) error {
	l.mu.Lock()
	after := l.after
	l.mu.Unlock()
	select {
	case <-time.After(after):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *late) slow(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = after
}

// Two replicas share a limit, and their server answers too late from one moment on. Together they let no more
// pass than the limit and what each has reserved ahead; when the server stays away, their even shares come
// back within a minute; and what the limit leaves is used up when it answers.
func TestSlowServer(t *testing.T) {
	for name, c := range map[string]struct {
		limits quota.Limits
		each   quota.Request
		limit  int // in requests
	}{
		"requests": {quota.Limits{RequestsPerMinute: 40}, quota.Request{Key: "a"}, 40},
		"tokens":   {quota.Limits{TokensPerMinute: 40_000}, quota.Request{Key: "a", Input: 600, Output: 400}, 40},
		"day":      {quota.Limits{TokensPerDay: 40_000}, quota.Request{Key: "a", Input: 600, Output: 400}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &late{Store: memory.New(memory.Config{})}
				var replicas []*quota.Limiter
				for range 2 {
					shared := store.NewShared(server, memory.New(memory.Config{}), store.SharedConfig{}, nil)
					l := quota.New(shared, one(c.limits))
					defer func() { l.Close(); shared.Close() }()
					replicas = append(replicas, l)
				}
				passed := 0
				burst := func(n, replicasAsked int) {
					var all sync.WaitGroup
					var mu sync.Mutex
					for i := range n {
						all.Go(func() {
							g, refused := replicas[i%replicasAsked].Admit(t.Context(), c.each)
							if refused != nil {
								return
							}
							g.End(int64(c.each.Input+c.each.Output), 0)
							mu.Lock()
							passed++
							mu.Unlock()
						})
					}
					all.Wait()
					synctest.Wait()
				}
				for range 3 {
					burst(2, 2) // they hear of one another
				}
				burst(24, 1) // of one: the other's share is not used
				if passed != 30 {
					t.Fatalf("%d of 30 passed while the server answered", passed)
				}
				server.slow(200 * time.Millisecond)
				for range 10 {
					burst(20, 2)
					time.Sleep(20 * time.Millisecond)
				}
				if passed > c.limit || passed < 30 {
					t.Errorf("%d passed, the limit is %d", passed, c.limit)
				}
				before := passed
				time.Sleep(time.Minute)
				burst(100, 2)
				if got := passed - before; got < 4 || got > c.limit+2 {
					t.Errorf("after a minute without the server %d pass", got)
				}
				server.slow(0)
				server.work.Wait()
				time.Sleep(25 * time.Hour)
				for range 3 {
					burst(2, 2)
				}
				before = passed
				burst(100, 2)
				// Each may still have ahead what a sixteenth of its share is: 1,250 tokens, a request and a quarter.
				if got := passed - before; got < c.limit-6-3 || got > c.limit {
					t.Errorf("with the server again %d pass", got)
				}
			})
		})
	}
}

// Of a large limit that is far from used up nobody is turned away in the moments in which
// the server stops answering, and no more than an eighth of it passes without its word.
func TestSlowServerOfLargeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &late{Store: memory.New(memory.Config{})}
		var replicas []*quota.Limiter
		for range 2 {
			shared := store.NewShared(server, memory.New(memory.Config{}), store.SharedConfig{}, nil)
			l := quota.New(shared, one(quota.Limits{RequestsPerMinute: 16_000}))
			defer func() { l.Close(); shared.Close() }()
			replicas = append(replicas, l)
		}
		ask := func(n int) (passed int) {
			for i := range n {
				if g, refused := replicas[i%2].Admit(t.Context(), quota.Request{Key: "a"}); refused == nil {
					g.End(0, 0)
					passed++
				}
			}
			synctest.Wait()
			return passed
		}
		for range 3 {
			ask(2)
		}
		server.slow(200 * time.Millisecond)
		if got := ask(4); got != 4 {
			t.Errorf("%d of the first 4 passed", got)
		}
		start := time.Now()
		if got := ask(16_000); got < 1_800 || time.Since(start) < 10*time.Second && got > 16_000/8+16_000/16+16_000/6+100 {
			t.Errorf("%d of 16,000 passed in %v", got, time.Since(start))
		}
	})
}

// While the server does not answer, requests for a model without a price, which are refused at once, take nothing from
// what other clients may use.
func TestUnpricedWithoutServer(t *testing.T) {
	cfg := quota.Config{Total: quota.Limits{RequestsPerMinute: 40, SpendingPerDay: 1000}, Prices: quota.Prices{"m": {Input: 1}}}
	for name, unpriced := range map[string]bool{"with": true, "without": false} {
		synctest.Test(t, func(t *testing.T) {
			server := &late{Store: memory.New(memory.Config{})}
			var replicas []*quota.Limiter
			for range 2 {
				shared := store.NewShared(server, memory.New(memory.Config{}), store.SharedConfig{}, nil)
				l := quota.New(shared, cfg)
				defer func() { l.Close(); shared.Close() }()
				replicas = append(replicas, l)
			}
			ask := func(l *quota.Limiter, key, model string) bool {
				g, refused := l.Admit(t.Context(), quota.Request{Key: key, Model: model, Input: 10})
				if refused == nil {
					g.End(10, 0)
				}
				synctest.Wait()
				return refused == nil
			}
			for range 3 {
				ask(replicas[0], "a", "m")
				ask(replicas[1], "a", "m")
			}
			server.slow(200 * time.Millisecond)
			for range 30 {
				ask(replicas[0], "a", "m") // uses what was reserved
			}
			time.Sleep(time.Minute)
			passed := 0
			for range 10 {
				if unpriced && ask(replicas[0], "b", "unknown") {
					t.Error("a model without a price passed")
				}
				if ask(replicas[0], "a", "m") {
					passed++
				}
			}
			if passed != 10 {
				t.Errorf("%s requests of another client for a model without a price, %d of 10 pass", name, passed)
			}
		})
	}
}

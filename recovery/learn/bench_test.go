package learn_test

import (
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

// BenchmarkFacts is what a healthy request asks of what was learnt.
func BenchmarkFacts(b *testing.B) {
	for _, c := range []struct {
		name  string
		learn func(f *learn.Facts)
	}{
		{"nothing", func(*learn.Facts) {}},
		{"another", func(f *learn.Facts) {
			f.Learn(recovery.Target{Upstream: "other", Model: "x"}, []recovery.Edit{{Field: "seed", Drop: true}}, "r1")
		}},
		{"this", func(f *learn.Facts) { f.Learn(target.Keyless(), []recovery.Edit{{Field: "seed", Drop: true}}, "r1") }},
		{"listed", func(f *learn.Facts) { f.ListWindow(target, 128_000) }},
	} {
		m := store.NewMirror(memory.New(memory.Defaults()), []string{learn.BoardFacts}, 0)
		f := learn.NewFacts(m, time.Hour)
		c.learn(f)
		b.Run(c.name+"/Edits", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Edits(target)
			}
		})
		b.Run(c.name+"/Window+Overflowed", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Window(target)
				f.Overflowed(target)
			}
		})
		m.Stop()
	}
}

// BenchmarkPace is the limit and the sample of one healthy request.
func BenchmarkPace(b *testing.B) {
	m := store.NewMirror(memory.New(memory.Defaults()), []string{learn.BoardFacts}, 0)
	defer m.Stop()
	p := learn.NewPace(learn.Defaults().FirstToken, recovery.Defaults().Parallel, learn.NewFacts(m, time.Hour))
	x, c := exchange(b, 250, ""), candidate("gpt-4.1-mini")
	b.Run("Limit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Limits(x, c, false)
		}
	})
	b.Run("Observe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Observe(x, c, time.Second, recovery.Usage{})
		}
	})
}

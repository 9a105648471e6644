package route_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/route"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func rank(n int) *int { return &n }

func table(upstreams []route.Upstream, targets ...route.Target) *route.Table {
	return route.New(upstreams, map[string]route.Model{"m": {Targets: targets}}, [transcript.APICount]string{upstreams[0].Name}, &route.Pins{})
}

// names of upstreams and keys, in order.
func names(list []recovery.Choice) (out []string) {
	for _, c := range list {
		n := c.Upstream
		if c.Key != "" {
			n += "#" + c.Key
		}
		out = append(out, n)
	}
	return out
}

func TestRanks(t *testing.T) {
	up := []route.Upstream{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	plain := table(up, route.Target{Upstream: "a"}, route.Target{Upstream: "b", Weight: 100}, route.Target{Upstream: "c"})
	for affinity := range uint64(200) {
		if got := names(plain.Candidates("m", transcript.OpenAI, "", affinity)); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Fatalf("affinity %d: %v: the order of the list is the order of preference", affinity, got)
		}
	}
	named := table(up, route.Target{Upstream: "a", Rank: rank(5)}, route.Target{Upstream: "b", Rank: rank(0)},
		route.Target{Upstream: "c", Rank: rank(0)}, route.Target{Upstream: "d", Rank: rank(2)})
	first := map[string]int{}
	for affinity := range uint64(1000) {
		got := names(named.Candidates("m", transcript.OpenAI, "", affinity))
		if got[2] != "d" || got[3] != "a" {
			t.Fatalf("affinity %d: %v", affinity, got)
		}
		first[got[0]]++
	}
	if first["b"] < 400 || first["c"] < 400 {
		t.Errorf("equal ranks share: %v", first)
	}
}

func TestWeights(t *testing.T) {
	up := []route.Upstream{{Name: "a"}, {Name: "b"}, {Name: "c", Keys: []route.Key{{Name: "x"}, {Name: "y", Weight: 3}}}}
	cases := []struct {
		name    string
		targets []route.Target
		want    map[string]float64
	}{
		{"default", []route.Target{{Upstream: "a", Rank: rank(0)}, {Upstream: "b", Rank: rank(0)}}, map[string]float64{"a": 0.5, "b": 0.5}},
		{"three to one", []route.Target{{Upstream: "a", Rank: rank(0), Weight: 3}, {Upstream: "b", Rank: rank(0), Weight: 1}},
			map[string]float64{"a": 0.75, "b": 0.25}},
		{"one in twenty", []route.Target{{Upstream: "a", Rank: rank(0), Weight: 19}, {Upstream: "b", Rank: rank(0)}}, map[string]float64{"a": 0.95, "b": 0.05}},
		{"keys", []route.Target{{Upstream: "c"}}, map[string]float64{"c#x": 0.25, "c#y": 0.75}},
	}
	const n = 10_000
	for _, c := range cases {
		tab := table(up, c.targets...)
		got := map[string]int{}
		for affinity := range uint64(n) {
			got[names(tab.Candidates("m", transcript.OpenAI, "", affinity))[0]]++
		}
		for name, want := range c.want {
			if share := float64(got[name]) / n; math.Abs(share-want) > 0.02 {
				t.Errorf("%s: %s has %.3f, want %.2f", c.name, name, share, want)
			}
		}
	}
}

func keys(n int) (list []route.Key) {
	for i := range n {
		list = append(list, route.Key{Name: fmt.Sprint("k", i)})
	}
	return list
}

// TestKeepsTarget: the same affinity has the same order, in every process and
// whatever the order of the configuration; a key that goes takes only its own share along.
func TestKeepsTarget(t *testing.T) {
	all := table([]route.Upstream{{Name: "a", Keys: keys(5)}}, route.Target{Upstream: "a"})
	turned := keys(5)
	slices.Reverse(turned)
	again := table([]route.Upstream{{Name: "a", Keys: turned}}, route.Target{Upstream: "a"})
	less := table([]route.Upstream{{Name: "a", Keys: append(keys(2), keys(5)[3:]...)}}, route.Target{Upstream: "a"})
	moved := 0
	for affinity := range uint64(10_000) {
		x := names(all.Candidates("m", transcript.OpenAI, "", affinity))
		if y := names(again.Candidates("m", transcript.OpenAI, "", affinity)); !slices.Equal(x, y) {
			t.Fatalf("affinity %d: %v, then %v", affinity, x, y)
		}
		z := names(less.Candidates("m", transcript.OpenAI, "", affinity))
		if x[0] == "a#k2" {
			moved++
			if z[0] != x[1] {
				t.Fatalf("affinity %d: went to %s instead of the second, %s", affinity, z[0], x[1])
			}
		} else if z[0] != x[0] {
			t.Fatalf("affinity %d: moved from %s to %s", affinity, x[0], z[0])
		}
	}
	if moved < 1700 || moved > 2300 {
		t.Errorf("%d of 10000 were with the key that went", moved)
	}
}

func TestExpand(t *testing.T) {
	up := []route.Upstream{
		{Name: "own", Keys: keys(2), Prefill: recovery.PrefillAssistant},
		{Name: "pass", Passthrough: true},
		{Name: "local", Local: true},
	}
	tab := table(up, route.Target{Upstream: "pass", Model: "other", Window: 1000},
		route.Target{Upstream: "own", Weight: 4, Prefill: "prefix"}, route.Target{Upstream: "local"}, route.Target{Upstream: "own"})
	list := tab.Candidates("m", transcript.OpenAI, "client", 7)
	if len(list) != 6 {
		t.Fatalf("%v", names(list))
	}
	c := list[0]
	if c.Target != (recovery.Target{Upstream: "pass", Model: "other", Key: "client"}) || !c.Client || c.Window != 1000 || c.Weight != 1 || c.Local {
		t.Errorf("%+v", c)
	}
	for _, c := range list[1:3] {
		if c.Model != "m" || c.Client || c.Prefill != recovery.PrefillPrefix || c.Rank != 1 || c.Weight != 2 {
			t.Errorf("%+v", c)
		}
	}
	if c := list[3]; c.Key != "" || !c.Local || c.Client {
		t.Errorf("a keyless upstream does not get the client's credential: %+v", c)
	}
	if list[4].Prefill != recovery.PrefillAssistant {
		t.Errorf("the upstream's prefill: %+v", list[4])
	}
	// What is not mapped goes to the default upstream under its own name.
	if got := tab.Candidates("unheard-of", transcript.OpenAI, "client", 7); len(got) != 2 || got[0].Upstream != "own" || got[0].Model != "unheard-of" {
		t.Errorf("%+v", got)
	}
	if !tab.Chooses("m", transcript.OpenAI) || !tab.Chooses("unheard-of", transcript.OpenAI) || !slices.Equal(tab.Names(), []string{"m"}) {
		t.Error("Chooses or Names")
	}
}

func TestFallbackFor(t *testing.T) {
	for _, c := range []struct {
		name string
		list []recovery.Class
		want []recovery.Class
	}{
		{"nil is the default", nil, []recovery.Class{recovery.ModelNotFound}},
		{"empty is none", []recovery.Class{}, nil},
		{"named", []recovery.Class{recovery.ContentPolicy}, []recovery.Class{recovery.ContentPolicy}},
	} {
		tab := route.New([]route.Upstream{{Name: "a"}, {Name: "b"}}, map[string]route.Model{"m": {
			Targets: []route.Target{{Upstream: "a"}, {Upstream: "b"}}, FallbackFor: c.list}}, [transcript.APICount]string{"a"}, &route.Pins{})
		got := tab.Candidates("m", transcript.OpenAI, "", 1)
		for i := range got {
			if !slices.Equal(got[i].Fallback, c.want) {
				t.Errorf("%s: target %d has %v, want %v", c.name, i, got[i].Fallback, c.want)
			}
		}
	}
}

func TestPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pins := &route.Pins{}
		up := []route.Upstream{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		model := map[string]route.Model{"m": {Targets: []route.Target{{Upstream: "a"}, {Upstream: "b"}, {Upstream: "c"}}}}
		order := func(pin string) []string {
			t.Helper()
			x := &recovery.Exchange{Request: recovery.Request{Model: "m"}, Conversation: recovery.Conversation{Pin: pin, Affinity: 3}}
			// A table of a later configuration has the pins of the one before.
			if err := route.New(up, model, [transcript.APICount]string{"a"}, pins).Prepare(context.Background(), x); err != nil {
				t.Fatal(err)
			}
			return names(x.Candidates)
		}
		b, c := recovery.Target{Upstream: "b", Model: "m"}, recovery.Target{Upstream: "c", Model: "m"}
		check := func(pin string, want ...string) {
			t.Helper()
			if got := order(pin); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", pin, got, want)
			}
		}
		pins.Keep("s/1", c)
		pins.Keep("t/1", recovery.Target{Upstream: "gone", Model: "m"})
		check("s/1", "c", "a", "b")
		check("s/2", "a", "b", "c") // the next turn
		check("", "a", "b", "c")
		check("t/1", "a", "b", "c") // a target that is no more
		time.Sleep(3 * time.Minute)
		pins.Keep("s/1", c) // every request of the turn says so again
		check("s/1", "c", "a", "b")
		time.Sleep(2*time.Minute + time.Second)
		check("s/1", "a", "b", "c") // five minutes after the failover
		pins.Keep("s/1", c)
		check("s/1", "c", "a", "b")
		pins.Keep("s/1", b) // another failover
		check("s/1", "b", "a", "c")
	})
}

// TestPinsBounded: sessions without number cost nothing, and the newest is kept.
func TestPinsBounded(t *testing.T) {
	pins := &route.Pins{}
	tab := route.New([]route.Upstream{{Name: "a"}, {Name: "b"}}, map[string]route.Model{
		"m": {Targets: []route.Target{{Upstream: "a"}, {Upstream: "b"}}}}, [transcript.APICount]string{"a"}, pins)
	b := recovery.Target{Upstream: "b", Model: "m"}
	kept := 0
	for i := range 30_000 {
		pins.Keep(fmt.Sprint("s", i), b)
	}
	for i := range 30_000 {
		x := &recovery.Exchange{Request: recovery.Request{Model: "m"}, Conversation: recovery.Conversation{Pin: fmt.Sprint("s", i)}}
		_ = tab.Prepare(context.Background(), x)
		if x.Candidates[0].Upstream == "b" {
			kept++
		} else if i == 29_999 {
			t.Error("the newest is gone")
		}
	}
	if kept < 9_000 || kept > 10_000 {
		t.Errorf("%d are kept", kept)
	}
}

func TestValidate(t *testing.T) {
	good := route.Model{Targets: []route.Target{{Upstream: "a", Prefill: "assistant"}}, FallbackFor: []recovery.Class{recovery.ContentPolicy}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, m := range []route.Model{
		{},
		{Targets: []route.Target{{}}},
		{Targets: []route.Target{{Upstream: "a", Weight: -1}}},
		{Targets: []route.Target{{Upstream: "a", Window: -1}}},
		{Targets: []route.Target{{Upstream: "a", Rank: rank(-1)}}},
		{Targets: []route.Target{{Upstream: "a", Prefill: "maybe"}}},
		{Targets: []route.Target{{Upstream: "a"}}, FallbackFor: []recovery.Class{recovery.RateLimit}},
	} {
		if m.Validate() == nil {
			t.Errorf("valid: %+v", m)
		}
	}
}

// TestSameOrder: no version gives a conversation another order than the one
// before: its prompt cache is where it was.
func TestSameOrder(t *testing.T) {
	up := []route.Upstream{{Name: "a", Keys: keys(3)}, {Name: "b"}, {Name: "c", Passthrough: true}}
	tab := table(up, route.Target{Upstream: "a"}, route.Target{Upstream: "b", Rank: rank(0), Weight: 2, Model: "other/model"},
		route.Target{Upstream: "c", Rank: rank(0)})
	for affinity, want := range map[uint64]string{
		0: "b c#client a#k2 a#k0 a#k1", 1: "b a#k2 a#k1 c#client a#k0", 7: "b a#k1 a#k0 a#k2 c#client",
		1 << 40: "a#k2 c#client b a#k1 a#k0", math.MaxUint64: "a#k1 b c#client a#k0 a#k2", 0x0123456789abcdef: "b a#k0 a#k2 a#k1 c#client",
	} {
		if got := strings.Join(names(tab.Candidates("m", transcript.OpenAI, "client", affinity)), " "); got != want {
			t.Errorf("%#x: %q, want %q", affinity, got, want)
		}
	}
}

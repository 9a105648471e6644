package store_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

const hour = time.Hour

func vaultOf(values store.Values) *store.Vault {
	return store.NewVault(values, time.Second, 1<<20, values == nil)
}

// TestVault: a caller with the secret finds the values, in this process and in another one; nobody
// else does.
func TestVault(t *testing.T) {
	ctx := t.Context()
	shared := memory.New(memory.Defaults())
	one, two := vaultOf(shared), vaultOf(shared)
	one.Put(ctx, "secret a", store.Entry{Key: "k", Value: []byte("the text of a"), TTL: hour}, store.Entry{Key: "empty", Value: []byte{}, TTL: hour})
	one.Put(ctx, "secret b", store.Entry{Key: "k", Value: []byte("the text of b"), TTL: hour})
	for name, v := range map[string]*store.Vault{"this process": one, "another one": two} {
		got := v.Get(ctx, "secret a", "none", "k", "empty")
		if got[0] != nil || string(got[1]) != "the text of a" || got[2] == nil || len(got[2]) != 0 {
			t.Errorf("%s: %q", name, got)
		}
		for _, secret := range []string{"", "secret", "secret ak", "secret c"} {
			if got := v.Get(ctx, secret, "k", ""); got[0] != nil || got[1] != nil {
				t.Errorf("%s: %q finds %q", name, secret, got)
			}
		}
	}
	two.Delete(ctx, "secret b", "k")
	two.Delete(ctx, "secret c", "k")
	if got := vaultOf(shared).Get(ctx, "secret b", "k"); got[0] != nil {
		t.Errorf("it was deleted: %q", got)
	}
	if got := two.Get(ctx, "secret a", "k"); got[0] == nil {
		t.Error("another secret's deletion reaches it")
	}
}

// spied is a store that records the entries that are set, for the test to inspect.
type spied struct {
	store.Values
	keys   []string
	values [][]byte
}

func (s *spied) Set(ctx context.Context, entries ...store.Entry) error {
	for _, e := range entries {
		s.keys, s.values = append(s.keys, e.Key), append(s.values, e.Value)
	}
	return s.Values.Set(ctx, entries...)
}

// TestVaultIsSealed: the store sees neither names nor texts, a value is bound to its name, and values
// without a secret are not in the store.
func TestVaultIsSealed(t *testing.T) {
	ctx := t.Context()
	shared := &spied{Values: memory.New(memory.Defaults())}
	v := vaultOf(shared)
	v.Put(ctx, "secret", store.Entry{Key: "resp_1", Value: []byte("the text"), TTL: hour}, store.Entry{Key: "resp_2", Value: []byte("another"), TTL: hour})
	all := strings.Join(shared.keys, " ") + string(bytes.Join(shared.values, nil))
	if len(shared.values) != 2 || strings.Contains(all, "text") || strings.Contains(all, "resp_") || strings.Contains(all, "secret") {
		t.Errorf("the store has %q", all)
	}
	if err := shared.Values.Set(ctx, store.Entry{Key: shared.keys[0], Value: shared.values[1], TTL: hour}); err != nil {
		t.Fatal(err)
	}
	if got := vaultOf(shared).Get(ctx, "secret", "resp_1", "resp_2"); got[0] != nil || string(got[1]) != "another" {
		t.Errorf("a value under another one's name is %q", got)
	}
	v.Put(ctx, "", store.Entry{Key: "resp_1", Value: []byte("nobody's"), TTL: hour})
	if len(shared.values) != 2 || string(v.Get(ctx, "", "resp_1")[0]) != "nobody's" {
		t.Errorf("without a secret: %q", shared.values)
	}
}

// TestVaultBounds: memory in the process is bounded, values expire, and Holds tells what another
// request will find.
func TestVaultBounds(t *testing.T) {
	ctx := t.Context()
	alone := vaultOf(nil)
	for i := range 100 {
		alone.Put(ctx, "s", store.Entry{Key: fmt.Sprint(i), Value: make([]byte, 100<<10), TTL: hour})
	}
	left := 0
	for i := range 100 {
		if alone.Get(ctx, "s", fmt.Sprint(i))[0] != nil {
			left++
		}
	}
	if left < 5 || left > 10 {
		t.Errorf("%d values of 100 KiB are in a mebibyte", left)
	}
	for i := range 100_000 {
		alone.Put(ctx, "s", store.Entry{Key: fmt.Sprint(i), Value: []byte{}, TTL: hour})
	}
	left = 0
	for i := range 100_000 {
		if alone.Get(ctx, "s", fmt.Sprint(i))[0] != nil {
			left++
		}
	}
	if left > 1<<20/256 {
		t.Errorf("%d empty values are in a mebibyte", left)
	}
	shared := vaultOf(memory.New(memory.Defaults()))
	apart := store.NewVault(nil, time.Second, 1<<20, false) // others are there, and must not see anything
	for name, c := range map[string]struct {
		v      *store.Vault
		secret string
		size   int
		want   bool
	}{
		"alone": {alone, "", 200 << 10, true}, "alone, too large": {alone, "", 256 << 10, false}, "shared": {shared, "s", 900 << 10, true},
		"shared, too large": {shared, "s", 1 << 20, false}, "shared without a secret": {shared, "", 1, false}, "others cannot see it": {apart, "s", 1, false},
	} {
		if got := c.v.Holds(c.secret, c.size); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		v := vaultOf(nil)
		v.Put(t.Context(), "s", store.Entry{Key: "k", Value: []byte("v"), TTL: hour})
		time.Sleep(hour - time.Second)
		if v.Get(t.Context(), "s", "k")[0] == nil {
			t.Error("it is gone before its time")
		}
		time.Sleep(2 * time.Second)
		if v.Get(t.Context(), "s", "k")[0] != nil {
			t.Error("it is there after its time")
		}
	})
}

// FuzzVault: whatever the store has in place of a value, the vault returns that value or nothing.
func FuzzVault(f *testing.F) {
	f.Add([]byte{}, "secret")
	f.Add(make([]byte, 40), "secret")
	f.Fuzz(func(t *testing.T, box []byte, secret string) {
		if len(box) > store.MaxValue || secret == "" {
			return
		}
		shared := &spied{Values: memory.New(memory.Defaults())}
		vaultOf(shared).Put(t.Context(), secret, store.Entry{Key: "k", Value: []byte("v"), TTL: hour})
		if err := shared.Values.Set(t.Context(), store.Entry{Key: shared.keys[0], Value: box, TTL: hour}); err != nil {
			t.Fatal(err)
		}
		if got := vaultOf(shared).Get(t.Context(), secret, "k")[0]; got != nil {
			t.Errorf("%q was read as %q", box, got)
		}
	})
}

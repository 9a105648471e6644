package recording_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/store"
	"github.com/rebound-llm/rebound/store/memory"
)

// What somebody else put into the store in a recording's place is never shown.
func FuzzFind(f *testing.F) {
	values := memory.New(memory.Defaults())
	f.Cleanup(func() { _ = values.Close() })
	r := recording.New(config(nil), values, func(error) {})
	r.Keep(one("a", body(0, "x"), body(0, "y")))
	r.Close(f.Context())
	sealed, err := values.Get(f.Context(), "recording/a")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(sealed[0])
	f.Add(sealed[0][:20])
	f.Add(append(bytes.Clone(sealed[0]), 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := values.Set(t.Context(), store.Entry{Key: "recording/b", Value: raw, TTL: time.Minute}); err != nil {
			return
		}
		if got, err := r.Find(t.Context(), "b"); !errors.Is(err, recording.ErrKey) && !errors.Is(err, recording.ErrUnknown) || got != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

package redis

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/store"
)

// FuzzDecode: parsing anything from a server neither panics nor returns data out
// of bounds, and what we write is read back.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "=", ":", "1:ab", "3:ab", "512:x", "-1:x", "99999999999999999999:x", "1763000000000000:x"} {
		f.Add("name", []byte(s))
	}
	now := time.Now()
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		if v, ok := parseSlot(b); ok && (len(v) > store.MaxValue || !bytes.HasSuffix(b, v)) {
			t.Errorf("slot %q", v)
		}
		if v := parseValue(string(b)); len(v) > store.MaxValue {
			t.Errorf("value of %d bytes", len(v))
		}
		if field, ok := parseField([]byte(name), b, now); ok && store.CheckField("b", field) != nil {
			t.Errorf("field %v", field)
		}
		if store.CheckPush("k", name, b, 1) == nil {
			if v, ok := parseSlot(fmt.Appendf(nil, "%d:%s%s", len(name), name, b)); !ok || !bytes.Equal(v, b) {
				t.Errorf("a slot comes back as %q, %v", v, ok)
			}
		}
		want := store.Field{Name: name, Value: b, Until: now.Add(time.Hour)}
		if store.CheckField("b", want) == nil {
			got, ok := parseField([]byte(name), fmt.Appendf(nil, "%d:%s", micros(want.Until), b), now)
			if !ok || got.Name != name || !bytes.Equal(got.Value, b) {
				t.Errorf("a field comes back as %v, %v", got, ok)
			}
		}
	})
}

// FuzzCharged: any reply of a server to charges is an error or a valid Charged.
func FuzzCharged(f *testing.F) {
	f.Add([]byte("0 5 3 2 4 2 0"))
	f.Add([]byte("2 -9223372036854775808 9223372036854775807 9223372036854775807 1 1 1"))
	charges := []store.Charge{{Account: "a", Meter: "m", Amount: 1, Limit: 3, Window: time.Minute},
		{Account: "a", Meter: "n", Holder: "h", Amount: 1, Limit: 3, Window: time.Minute}}
	f.Fuzz(func(t *testing.T, answer []byte) {
		done, err := parseCharged(charges, bytes.Fields(answer), time.Now())
		if err == nil && (len(done.Used) != 2 || done.Refused < -1 || done.Refused > 1 || done.Wait < 0) {
			t.Errorf("%q is read as %+v", answer, done)
		}
	})
}

package transcript

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tidwall/gjson"
)

// body is a request of about size bytes, made of real agent messages.
func body(b testing.TB, size int) []byte {
	raw := samples(b)["pi.json"]
	parsed, err := Parse(raw, Chat, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	if size < 4096 {
		return []byte(`{"model":"gpt-5","messages":[{"role":"system","content":"You are a helpful assistant.\nBe brief."},{"role":"user","content":` +
			string(String(string(raw[2000:2000+size-300]))) + `}],"stream":true,"stream_options":{"include_usage":true},"temperature":0.2}`)
	}
	e := parsed.Edit()
	for n := len(raw); n < size; {
		for _, m := range parsed.Messages()[1:] {
			e.AppendMessage(m.Raw())
			if n += len(m.Raw()) + 1; n >= size {
				break
			}
		}
	}
	out, err := e.Apply()
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func BenchmarkScan(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		raw := body(b, size)
		for _, c := range []struct {
			name string
			run  func() bool
		}{
			{"Parse", func() bool { _, err := Parse(raw, Chat, Limits{}); return err == nil }},
			{"Parse+Messages", func() bool { p, _ := Parse(raw, Chat, Limits{}); return len(p.Messages()) > 0 }},
			{"Valid", func() bool { return Valid(raw, 0) == nil }},
			{"gjson.Valid", func() bool { return gjson.ValidBytes(raw) }},
			{"json.Valid", func() bool { return json.Valid(raw) }},
		} {
			b.Run(fmt.Sprintf("%s/%dKB", c.name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					if !c.run() {
						b.Fatal("invalid")
					}
				}
			})
		}
	}
}

// A session that has grown by a turn since its last request, of which the client has
// changed the last message or not.
func BenchmarkParser(b *testing.B) {
	for _, size := range []int{100 << 10, 1 << 20} {
		raw := body(b, size)
		parsed, err := Parse(raw, Chat, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		list := parsed.Messages()
		last := list[len(list)-3].End
		grown := append(append([]byte{}, raw[:last]...), raw[list[len(list)-1].End:]...)
		changed := append(append(append([]byte{}, raw[:last-1]...), `,"cache_control":{"type":"ephemeral"}}`...), raw[list[len(list)-1].End:]...)
		for name, before := range map[string][]byte{"grown": grown, "changed": changed} {
			b.Run(fmt.Sprintf("%s/%dKB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					p := NewParser()
					_, _ = p.Parse(before, Chat, Limits{})
					b.StartTimer()
					if _, err := p.Parse(raw, Chat, Limits{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkEdit(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		raw := body(b, size)
		p, err := Parse(raw, Chat, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		p.Messages()
		short := []byte(`{"_compressed":true}`)
		for _, c := range []struct {
			name string
			run  func() *Editor
		}{
			{"SetModel", func() *Editor { return p.Edit().SetModel("claude") }},
			{"Append", func() *Editor { return p.Edit().AppendMessage([]byte(`{"role":"user","content":"x"}`)) }},
			{"EveryMessage", func() *Editor {
				e := p.Edit()
				for i := range p.Messages() {
					e.SetMessageField(i, "content", short)
				}
				return e
			}},
		} {
			b.Run(fmt.Sprintf("%s/%dKB", c.name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.run().Apply(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Room for the history grows with it, and nothing else does.
func TestParseAllocations(t *testing.T) {
	for size, most := range map[int]float64{1 << 10: 4, 100 << 10: 9, 1 << 20: 12} {
		raw := body(t, size)
		if n := testing.AllocsPerRun(20, func() { _, _ = Parse(raw, Chat, Limits{}) }); n > most {
			t.Errorf("%d KB: %v allocations, at most %v", size>>10, n, most)
		}
	}
}

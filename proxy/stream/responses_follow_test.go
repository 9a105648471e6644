package stream

import (
	"runtime"
	"strings"
	"testing"
)

// Reasoning that came in many pieces is put together once, for a response that goes on.
func TestManyPiecesOfReasoning(t *testing.T) {
	const n = 20_000
	event := func(kind, rest string) string {
		return `data: {"type":"response.` + kind + `","output_index":0,` + rest + "}\n\n"
	}
	events := event("output_item.added", `"item":{"id":"r","type":"reasoning","summary":[]}`) +
		strings.Repeat(event("reasoning_summary_text.delta", `"summary_index":0,"delta":"0123456789"`), n)
	f, known := &responsesEncoder{open: -1}, new(Known)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	eachEvent([]byte(events), func(ev *Event) { f.record(ev, Responses{}.Decode(ev, known)) })
	runtime.ReadMemStats(&after)
	if len(f.items) != 1 || len(f.items[0].said[0]) != 10*n {
		t.Fatalf("%d items", len(f.items))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 20*uint64(len(events)) {
		t.Errorf("%d bytes are allocated for %d", took, len(events))
	}
}

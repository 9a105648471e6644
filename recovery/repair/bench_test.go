package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// sampleProse returns an answer of size bytes with text, code and markup.
func sampleProse(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%d. The handler in `server_%d.go` compares a < b && c[%d] >= %x; see <https://example.com/%d>.\n", i, i, i, i*i*7919, i)
		if i%5 == 4 {
			fmt.Fprintf(&b, "```go\nfor i := %d; i < len(list); i++ {\n\tfmt.Println(\"<td>\", list[i], 0x%x)\n}\n```\n\n", i, i*104729)
		}
	}
	return b.String()[:size]
}

// writeFileArguments returns arguments that contain a file of about size bytes.
func writeFileArguments(size int) string {
	content := strings.NewReplacer("\n", `\n`, "\t", `\t`, `"`, `\"`).Replace(sampleProse(size))
	return `{"file_path":"src/server.go","start_line":1,"regex":"` + strings.TrimRight(content, `\`) + `"}`
}

// BenchmarkHealthyAnswer measures the judgement of valid answers.
func BenchmarkHealthyAnswer(b *testing.B) {
	req, m := withTools(b, ""), mender()
	text := func(n int) recovery.Draft { return recovery.Draft{Text: sampleProse(n), Finish: recovery.FinishStop} }
	for _, c := range []struct {
		name string
		d    recovery.Draft
	}{
		{"text100B", text(100)}, {"text1KB", text(1 << 10)}, {"text100KB", text(100 << 10)},
		{"call", call("read_file", `{"file_path":"internal/proxy/file_0007.go"}`)},
		{"nested", call("get_weather", seeds[0])},
		{"call1KB", call("read_file", writeFileArguments(1<<10))}, {"call100KB", call("read_file", writeFileArguments(100<<10))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if m.Mend(req, c.d).Judgement != recovery.JudgePass {
					b.Fatal("it does not pass")
				}
			}
		})
	}
}

// BenchmarkHealthyWatch measures the watch over one answer that arrives whole or in pieces.
func BenchmarkHealthyWatch(b *testing.B) {
	req, m := withTools(b, ""), mender()
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
		for _, piece := range []int{size, 20} {
			text := []byte(sampleProse(size))
			b.Run(fmt.Sprintf("%dKB/by%d", size>>10, piece), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w := m.Watch(req, -1)
					for rest := text; len(rest) > 0; {
						n := min(piece, len(rest))
						if w.Feed(recovery.PartText, rest[:n]) {
							b.Fatal("it is a repetition")
						}
						rest = rest[n:]
					}
				}
			})
		}
	}
}

// BenchmarkRecordedCalls validates the calls of a recorded session, with the outlines of
// their schemas and with the library alone.
func BenchmarkRecordedCalls(b *testing.B) {
	raw, err := os.ReadFile(filepath.Join("..", "transcript", "testdata", "pi.json"))
	if err != nil {
		b.Fatal(err)
	}
	req := recoverytest.Parse(b, raw, transcript.Chat)
	known := map[string]*schema{}
	for _, t := range req.Tools() {
		known[t.Name] = compile(t.Parameters)
	}
	type made struct {
		schema    *schema
		arguments string
	}
	var calls []made
	for _, m := range req.Messages() {
		for _, c := range m.ToolCalls() {
			calls = append(calls, made{known[c.Name], c.Text()})
		}
	}
	for _, by := range []string{"outline", "library"} {
		b.Run(by, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, c := range calls {
					if by == "library" {
						c.schema.outline = nil
					}
					if a := (&argumentMender{schema: c.schema, workLeft: fullBudget()}); !a.valid(c.arguments) {
						b.Fatal(a.problem)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(calls)), "ns/call")
			b.ReportMetric(float64(len(calls)), "calls")
		})
	}
}

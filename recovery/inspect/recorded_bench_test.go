package inspect_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// BenchmarkRecorded is what the stage costs the requests of recorded sessions:
// each is cut after each of its tools' results. One round is all of them, and knows
// nothing of the round before: each result is new once.
func BenchmarkRecorded(b *testing.B) {
	files, err := filepath.Glob(filepath.Join(*loopFolder, "*.json"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no sessions: %v", err)
	}
	var bodies []*transcript.Body
	size := 0
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		var session struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(raw, &session); err != nil {
			b.Fatal(err)
		}
		for n := 1; n <= len(session.Messages); n++ {
			var m struct{ Role string }
			if err := json.Unmarshal(session.Messages[n-1], &m); err != nil {
				b.Fatal(err)
			}
			if m.Role != "tool" {
				continue
			}
			body, err := json.Marshal(map[string]any{"model": "m", "messages": session.Messages[:n]})
			if err != nil {
				b.Fatal(err)
			}
			bodies, size = append(bodies, parse(b, body)), size+len(body)
		}
	}
	for _, body := range bodies {
		body.Messages() // any step needs those
	}
	s := inspect.NewStage(inspect.Defaults(), inspect.RulesForTests(), unheard{})
	round := func() {
		inspect.ForgetForTests()
		for _, body := range bodies {
			x := &recovery.Exchange{Request: recovery.Request{Body: body, Mode: recovery.ModeAct}, Conversation: recovery.Conversation{Session: "s"}}
			if err := s.Prepare(context.Background(), x); err != nil {
				b.Fatal(err)
			}
		}
	}
	round() // reads and compiles the rules
	b.ReportAllocs()
	began := processTime(b)
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64((processTime(b)-began).Microseconds())/float64(b.N*len(bodies)), "cpu-µs/request")
	b.ReportMetric(float64(size)/float64(len(bodies)), "B/request")
}

// processTime is the processor time that the process has used.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

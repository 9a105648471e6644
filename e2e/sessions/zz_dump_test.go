package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"context"
	"time"
)

func TestDump(t *testing.T) {
	r, _ := newReplayer()
	w, _ := os.Create("/tmp/dump.txt")
	defer w.Close()
	for _, f := range []string{"claude-code", "claude-managed", "gemini-cli", "gjc", "antigravity", "hermes", "codex", "opencode"} {
		list, err := load("/tmp/unseen-conv/" + f + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			items, format := s.history()
			st := inspect.NewStage(inspect.Defaults(), r.rules, &advised{})
			for i := 1; i <= len(items); i++ {
				if i < len(items) && !byModel(items[i]) || byModel(items[i-1]) {
					continue
				}
				b, err := transcript.Parse(s.body(i), format, transcript.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				x := &recovery.Exchange{ID: s.ID, Session: s.ID, Mode: recovery.ModeAct, Body: b, Trusted: true, Started: time.Now()}
				_ = st.Prepare(context.Background(), x)
				for k := range x.Results {
					q := &x.Results[k]
					txt := b.Messages()[q.Index].Text()
					fmt.Fprintf(w, "%s|%s|%d|%v|%s|%.2f|%s|%q|%q|%q\n", f, s.ID, i, q.Failed, q.Category, q.Confidence, q.Rule, q.Line, short(q.Tool+" "+q.Arguments, 200), ends(txt, 400))
				}
			}
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/store/memory"
)

type discardObserver struct{}

func (discardObserver) Observe(recovery.Event) {}

// The learn commands show, export, import and delete.
func TestLearnCommand(t *testing.T) {
	kept := memory.New(memory.Defaults())
	defer kept.Close()
	o := learn.NewOutcomes(learn.OutcomesAct, learn.Priors{"timeout": {"background": 0.5}}, learn.Parts{Store: kept,
		Vocabulary: func() learn.Vocabulary { return learn.Vocabulary{"timed": true} }, Observer: discardObserver{}})
	defer o.Close()
	mux := http.NewServeMux()
	admin.HandleLearned(mux, o)
	gateway := httptest.NewServer(mux)
	defer gateway.Close()
	table := &strings.Builder{}
	known, err := json.Marshal(recovery.Learned{Mode: "off", Wishes: []recovery.Wish{{Key: "alice", RuledOut: []string{"install", "network"}, Until: time.Date(2026, 12, 27, 0, 0, 0, 0, time.UTC)}}})
	if err != nil || learnTable(table, known) != nil || !strings.Contains(table.String(), "ruled out by the user, key alice, until 2026-12-27: install, network\n") {
		t.Errorf("%s, %v", table, err)
	}
	run := func(stdin string, args ...string) (int, string, string) {
		out, errs, code := runWith(noEnv, stdin, append(append([]string{"learn"}, args...), "--url", gateway.URL)...)
		return code, out, errs
	}
	var corpus strings.Builder
	for i := range 20 {
		fmt.Fprintf(&corpus, `{"v":1,"id":"i%d","session":"s%d","time":%d,"chain":"timeout","template":"timed <*>","model":"m","strategy":"background","outcome":"success"}`+"\n", i, i, time.Now().Unix())
	}
	file := filepath.Join(t.TempDir(), "corpus.jsonl")
	if err := os.WriteFile(file, []byte(corpus.String()+"{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		{"", []string{"report"}, 0, "0 observations"},
		{"", []string{"import", file}, 0, "added 20 observations, refused 1"},
		{corpus.String(), []string{"import", "-"}, 0, "added 0 observations, refused 0"},
		{"", []string{"report"}, 0, `timeout, model "m": the learned order`},
		{"", []string{"report", "--json"}, 0, `"strategy":"background","observations":20`},
		{"", []string{"export"}, 0, corpus.String()},
		{"# A document\n", []string{"import", "-"}, 2, "no line is an observation"},
		{"", []string{"reset"}, 0, "deleted"},
		{"", []string{"export"}, 0, ""},
		{"", []string{"import", file + ".none"}, 2, "no such file"},
		{strings.Repeat("x", 9<<20), []string{"import", "-"}, 1, ""}, // 413, where the connection is not cut before
		{"", []string{"import"}, 2, "Usage"},
		{"", []string{"exprt"}, 2, `unknown command "exprt": did you mean export?`},
		{"", []string{"forget"}, 2, "Usage"},
	} {
		code, out, errs := run(c.stdin, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: %d, %.300s%.300s", c.args, code, out, errs)
		}
	}
	if code, _, errs := run(strings.Repeat("a\n", 5<<20), "import", "-"); code != 1 {
		t.Errorf("a large corpus: %d %s", code, errs)
	}
}

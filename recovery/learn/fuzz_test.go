package learn_test

import (
	"bytes"
	"testing"

	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/store/memory"
)

// Whatever is imported, each line is taken, known or refused, and what was taken is
// exported and can be imported again.
func FuzzImport(f *testing.F) {
	f.Add([]byte("{}\n\n[]\r\nnull"))
	f.Add(append(entry(1, nil), '\n'))
	f.Add(append(append(entry(1, nil), '\n'), entry(2, func(o *learn.Observation) { o.Template, o.Model = "no such <*>", "x" })...))
	f.Add(bytes.Repeat([]byte("x"), 3000))
	f.Fuzz(func(t *testing.T, raw []byte) {
		add := func(raw []byte) (added, refused int, out []byte) {
			s := memory.New(memory.Defaults())
			defer s.Close()
			o := learn.NewOutcomes(learn.OutcomesAct, priors, learn.Parts{Store: s, Vocabulary: public, Observer: &recoverytest.Observer{}})
			defer o.Close()
			added, refused, err := o.Import(t.Context(), bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := o.Export(t.Context(), &file); err != nil {
				t.Fatal(err)
			}
			if report, err := o.Report(t.Context()); err != nil || report.Observations != added {
				t.Fatalf("%d were added, %d are known, %v", added, report.Observations, err)
			}
			return added, refused, file.Bytes()
		}
		added, refused, file := add(raw)
		lines := 0
		for line := range bytes.SplitSeq(raw, []byte{'\n'}) {
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		if added+refused > lines || added == 0 && refused != lines || bytes.Count(file, []byte{'\n'}) != added {
			t.Fatalf("of %d lines %d were added, %d refused, %d exported", lines, added, refused, bytes.Count(file, []byte{'\n'}))
		}
		if again, bad, _ := add(file); again != added || bad != 0 {
			t.Fatalf("of %d that were exported %d were added and %d refused", added, again, bad)
		}
	})
}

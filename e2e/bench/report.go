//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// report is a run with what one must know to read its figures.
type report struct {
	command string
	date    time.Time
	others  float64 // cores that other programs used meanwhile
	pinned  bool
	quick   bool
	targets []described
	skipped []skip
	results *results
	gates   []verdict
}

// described is a target that took part.
type described struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func newReport(o options) *report {
	return &report{command: o.command(), date: time.Now().UTC(), quick: o.quick}
}

func (r *report) describe(f *field) {
	r.pinned, r.skipped = f.pinned, f.skipped
	for _, t := range f.targets {
		r.targets = append(r.targets, described{t.name, t.version})
	}
}

// notes are the lines above the tables.
func (r *report) notes() []string {
	pinning := "gateway on one core, upstream and load generator on another"
	if !r.pinned {
		pinning = "NOT pinned to cores"
	}
	notes := []string{
		fmt.Sprintf("%s, `%s`, %s/%s, %s, %d cores: %s.",
			r.date.Format(time.DateOnly), r.command, runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), pinning),
		"Figures are the median of the rounds [lowest, highest], of CPU per request of four turns to a round; comparisons are made within each round or turn.",
	}
	var versions []string
	for _, t := range r.targets {
		versions = append(versions, t.Name+": "+t.Version)
	}
	notes = append(notes, strings.Join(versions, "; ")+".")
	for _, s := range r.skipped {
		notes = append(notes, fmt.Sprintf("Not measured: %s, because %s.", s.Name, s.Reason))
	}
	if r.others > 0.1 {
		notes = append(notes, fmt.Sprintf("Other programs used %.2f cores meanwhile: ratios of CPU are rough, latencies and delays are of no use.", r.others))
	}
	if r.quick {
		notes = append(notes, "This is a quick run, only good to see that everything works.")
	}
	return notes
}

func (r *report) tables() []table {
	var names []string
	for _, t := range r.targets {
		names = append(names, t.Name)
	}
	var tables []table
	for _, s := range r.results.scenarios {
		tables = append(tables, scenarioTable(r.results, s, names))
	}
	limits := table{title: "Gates for Rebound", rows: [][]string{{"", "measured", ""}}}
	for _, v := range r.gates {
		limits.rows = append(limits.rows, []string{v.Gate, v.rendered, v.outcome()})
	}
	return append(tables, limits)
}

func (r *report) print(w io.Writer) {
	fmt.Fprintln(w)
	for _, note := range r.notes() {
		fmt.Fprintln(w, strings.ReplaceAll(note, "`", ""))
	}
	fmt.Fprintln(w)
	for _, t := range r.tables() {
		t.text(w)
	}
}

func (r *report) save(o options) error {
	if o.json != "" {
		b, err := json.MarshalIndent(r.document(), "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if o.markdown != "" {
		var figures bytes.Buffer
		fmt.Fprintf(&figures, "%s\n\n", strings.Join(r.notes(), "\n"))
		for _, t := range r.tables() {
			t.markdown(&figures)
		}
		return saveMarkdown(o.markdown, figures.Bytes())
	}
	return nil
}

// document is the report as JSON shows it.
func (r *report) document() any {
	type summary map[string]spread
	type measured struct {
		Key     string              `json:"key"`
		Title   string              `json:"title"`
		Summary map[string]summary  `json:"summary"` // by target and column
		Rounds  map[string][]sample `json:"rounds"`  // by target
	}
	var all []measured
	for _, s := range r.results.scenarios {
		m := measured{Key: s.key, Title: s.title, Summary: map[string]summary{}, Rounds: r.results.samples[s.key]}
		for target := range m.Rounds {
			m.Summary[target] = summary{}
			for _, c := range s.columns {
				if value, found := r.results.value(s.key, target, c); found {
					m.Summary[target][c.head] = value
				}
			}
		}
		all = append(all, m)
	}
	return struct {
		Command   string      `json:"command"`
		Date      time.Time   `json:"date"`
		Go        string      `json:"go"`
		Cores     int         `json:"cores"`
		Pinned    bool        `json:"pinned"`
		Others    float64     `json:"cores_used_by_others"`
		Targets   []described `json:"targets"`
		Skipped   []skip      `json:"skipped,omitempty"`
		Scenarios []measured  `json:"scenarios"`
		Gates     []verdict   `json:"gates"`
	}{r.command, r.date, runtime.Version(), runtime.NumCPU(), r.pinned, r.others, r.targets, r.skipped, all, r.gates}
}

// The figures of a page stand between these, each on a line of its own.
const (
	figuresBegin = "<!-- figures: begin -->\n"
	figuresEnd   = "<!-- figures: end -->\n"
)

// saveMarkdown writes figures to file, or into it if it has the markers.
func saveMarkdown(file string, figures []byte) error {
	page, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(file, figures, 0o644)
	}
	if err != nil {
		return err
	}
	page, err = splice(page, figures)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644)
}

// splice replaces what stands between the markers of page.
func splice(page, figures []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte(figuresBegin))
	_, after, foundEnd := bytes.Cut(rest, []byte(figuresEnd))
	if !found || !foundEnd {
		return nil, errors.New("the markers for figures are missing")
	}
	return bytes.Join([][]byte{before, []byte(figuresBegin), []byte("\n"), figures, []byte(figuresEnd), after}, nil), nil
}

package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Status says how serious a finding is.
type Status string

// The kinds of findings.
const (
	OK      Status = "ok"
	Note    Status = "note"    // worth knowing; requests succeed
	Problem Status = "problem" // requests of users would fail
	Unknown Status = "unknown" // it could not be tested
)

// Finding is the result of one check.
type Finding struct {
	Status  Status `json:"status"`
	Check   string `json:"check"`
	Message string `json:"said"`
}

// Recovery says how the gateway handles one kind of failure.
type Recovery struct {
	Failure   string `json:"failure"`
	Recovered bool   `json:"recovered"`
	How       string `json:"how"`
}

// Target holds the results for one target.
type Target struct {
	Target   string     `json:"target"` // upstream/model, with the key's label if there is one
	URL      string     `json:"url"`
	Requests int        `json:"requests"`
	Tokens   int        `json:"tokens"` // total, as the target reports them
	Findings []Finding  `json:"findings"`
	Recovery []Recovery `json:"recovery,omitempty"` // empty if the target does not answer
}

// Report is the result of a run. It holds no secret.
type Report struct {
	Gateway []Finding `json:"gateway"`
	Targets []*Target `json:"targets"`
	// Config is YAML with suggested settings, "" if there are none.
	Config string `json:"config"`
	File   string `json:"file,omitempty"` // the configuration file, if there is one
}

// Count returns the number of findings with a status.
func (r *Report) Count(s Status) (n int) {
	all := r.Gateway
	for _, t := range r.Targets {
		all = slices.Concat(all, t.Findings)
	}
	for _, f := range all {
		if f.Status == s {
			n++
		}
	}
	return n
}

// JSON writes the report as indented JSON.
func (r *Report) JSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Print writes the report as text.
func (r *Report) Print(out io.Writer) error {
	var b strings.Builder
	for _, t := range r.Targets {
		fmt.Fprintf(&b, "%s at %s: %s", t.Target, t.URL, plural(t.Requests, "request"))
		if t.Tokens > 0 {
			fmt.Fprintf(&b, ", %s tokens", number(t.Tokens))
		}
		b.WriteString("\n")
		table(&b, t.Findings)
		for _, recovered := range [...]bool{true, false} {
			title := map[bool]string{true: "  Recovered:\n", false: "  Not recovered:\n"}[recovered]
			w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
			for _, o := range t.Recovery {
				if o.Recovered == recovered {
					fmt.Fprintf(w, "%s    %s\t%s\n", title, o.Failure, o.How)
					title = ""
				}
			}
			_ = w.Flush()
		}
		b.WriteString("\n")
	}
	if len(r.Gateway) > 0 {
		b.WriteString("The gateway\n")
		table(&b, r.Gateway)
		b.WriteString("\n")
	}
	if r.Config != "" {
		where := "for a new file to use with --config"
		if r.File != "" {
			where = "to add to " + r.File
		}
		fmt.Fprintf(&b, "Suggested configuration, %s:\n\n%s\n", where, r.Config)
	}
	b.WriteString(r.summary() + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// summary returns the last line of the report.
func (r *Report) summary() string {
	var parts []string
	if n := r.Count(Problem); n > 0 {
		parts = append(parts, plural(n, "problem"))
	}
	if n := r.Count(Unknown); n > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", n))
	}
	if r.Config == "" && len(parts) == 0 {
		return "No problems, and no changes to suggest."
	}
	return cmp.Or(strings.Join(parts, ", "), "No problems") + "."
}

// table writes findings in columns.
func table(b *strings.Builder, list []Finding) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", f.Status, f.Check, f.Message)
	}
	_ = w.Flush()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// number formats a number with commas between thousands.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

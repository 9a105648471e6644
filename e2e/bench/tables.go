//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table is what a report consists of, whatever it is written as.
type table struct {
	title string
	rows  [][]string // the first is the head
}

// scenarioTable has a row for each target.
func scenarioTable(r *results, s *scenario, targets []string) table {
	head := []string{""}
	for _, c := range s.columns {
		head = append(head, c.head)
	}
	t := table{title: s.title, rows: [][]string{head}}
	for _, target := range targets {
		if len(r.samples[s.key][target]) == 0 {
			continue
		}
		row := []string{target}
		for _, c := range s.columns {
			cell := "–"
			if value, found := r.value(s.key, target, c); found {
				cell = render(value, c.digits)
				if c.minus != "" && value.Median >= 0 {
					cell = "+" + cell
				}
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// render writes median and extremes, these only where they differ.
func render(s spread, digits int) string {
	format := func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	median, low, high := format(s.Median), format(s.Min), format(s.Max)
	if low == high {
		return median
	}
	return fmt.Sprintf("%s [%s, %s]", median, low, high)
}

// text aligns the table for a terminal.
func (t table) text(w io.Writer) {
	fmt.Fprintf(w, "%s\n", t.title)
	aligned := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintf(aligned, "  %s\n", strings.Join(row, "\t"))
	}
	aligned.Flush()
	fmt.Fprintln(w)
}

// markdown writes the table for the documentation.
func (t table) markdown(w io.Writer) {
	fmt.Fprintf(w, "### %s\n\n", t.title)
	for i, row := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(row)-1))
		}
	}
	fmt.Fprintln(w)
}

//go:build linux

package main

import (
	"math"
	"strings"
	"testing"
)

// paired is a run on a machine that became three times slower after its first
// round: only comparisons within a round come out right.
func paired() (*results, *scenario) {
	s := &scenario{key: "s", title: "S", columns: []column{
		{head: "µs", metric: cpuPerRequest},
		{head: "×", metric: cpuPerRequest, over: nginx, digits: 1},
		{head: "added", metric: cpuPerRequest, minus: nginx},
	}}
	r := newResults()
	for _, slow := range []float64{1, 3, 3} {
		r.add(s, nginx, sample{cpuPerRequest: 10 * slow})
		r.add(s, rebound, sample{cpuPerRequest: 20 * slow})
	}
	return r, s
}

func TestValueComparesWithinARound(t *testing.T) {
	r, s := paired()
	wants := []spread{{60, 20, 60}, {2, 2, 2}, {30, 10, 30}}
	for i, c := range s.columns {
		if got, found := r.value("s", rebound, c); !found || got != wants[i] {
			t.Errorf("%s: got %+v, %v, want %+v", c.head, got, found, wants[i])
		}
	}
}

func TestValueOfWhatIsMissing(t *testing.T) {
	r, s := paired()
	r.add(s, reverseProxy, sample{perSecond: 1})
	r.add(s, direct, sample{cpuPerRequest: 0})
	tests := map[string]struct {
		target string
		column column
	}{
		"a target with itself": {nginx, s.columns[1]},
		"no such target":       {"other", s.columns[0]},
		"no such metric":       {reverseProxy, s.columns[0]},
		"metric of one only":   {rebound, column{metric: cpuPerRequest, over: reverseProxy}},
		"ratio to zero":        {rebound, column{metric: cpuPerRequest, over: direct}},
	}
	for name, test := range tests {
		if got, found := r.value("s", test.target, test.column); found {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSampleKeepsOnlyNumbers(t *testing.T) {
	s := sample{}
	s.set(latencyP50, math.NaN())
	s.set(latencyP99, math.Inf(1))
	s.set(failures, 0)
	if len(s) != 1 {
		t.Errorf("kept %v; JSON has no such numbers", s)
	}
}

func TestScenarioTable(t *testing.T) {
	r, s := paired()
	var text, markdown strings.Builder
	table := scenarioTable(r, s, []string{direct, nginx, rebound})
	table.text(&text)
	table.markdown(&markdown)
	const wantText = "S\n" +
		"            µs            ×     added\n" +
		"  nginx     30 [10, 30]   –     –\n" +
		"  Rebound   60 [20, 60]   2.0   +30 [10, 30]\n\n"
	if text.String() != wantText {
		t.Errorf("got\n%s\nwant\n%s", text.String(), wantText)
	}
	const wantMarkdown = "### S\n\n" +
		"|  | µs | × | added |\n" +
		"|---|---:|---:|---:|\n" +
		"| nginx | 30 [10, 30] | – | – |\n" +
		"| Rebound | 60 [20, 60] | 2.0 | +30 [10, 30] |\n\n"
	if markdown.String() != wantMarkdown {
		t.Errorf("got\n%s\nwant\n%s", markdown.String(), wantMarkdown)
	}
}

func TestGates(t *testing.T) {
	byKey := map[string]*scenario{}
	for _, s := range scenarios(false) {
		byKey[s.key] = s
	}
	for _, g := range gates {
		if byKey[g.scenario] == nil {
			t.Errorf("%s: there is no scenario %q", g.name, g.scenario)
		}
	}

	r := newResults()
	if allMet(checkGates(r)) {
		t.Error("gates that were not measured are met")
	}
	add := func(key, target string, s sample) { r.add(byKey[key], target, s) }
	for key, limit := range map[string]float64{"cpu-1k": 1.1, "cpu-agent-57k": 1.5, "cpu-agent-115k": 2, "cpu-agent-565k": 1.5, "cpu-agent-stream": 1.3, "cpu-stream": 1.1} {
		add(key, reverseProxy, sample{cpuPerRequest: 20})
		add(key, rebound, sample{cpuPerRequest: 20 * limit})
	}
	add("streams", rebound, sample{peakMemory: 140, failures: 0})
	add("startup", rebound, sample{firstAnswer: 50, idleMemory: 30})
	for _, v := range checkGates(r) {
		if !v.Met {
			t.Errorf("%s: %s, at its limit", v.Gate, v.outcome())
		}
	}
	for _, round := range r.samples {
		for m := range round[rebound][0] {
			round[rebound][0][m] = round[rebound][0][m]*1.5 + 1
		}
	}
	for _, v := range checkGates(r) {
		if v.Met {
			t.Errorf("%s: met beyond its limit, %s", v.Gate, v.rendered)
		}
	}
}

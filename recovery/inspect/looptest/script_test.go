package looptest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Every script is read, each of its forms has lines, and each of its marks can be drawn.
func TestScripts(t *testing.T) {
	scripts := map[string]string{"failing": failing, "settled": settled}
	for _, sc := range slices.Concat(planted, healthy, plantedRounds, healthyRounds) {
		if (sc.script == "") != (sc.plan != nil) {
			t.Errorf("%s has a plan and a script, or neither", sc.name)
		} else if sc.plan == nil {
			scripts[sc.name] = sc.script
		}
	}
	for _, sit := range slices.Concat(progressing, repeating, waiting) {
		scripts[sit.name] = sit.script
	}
	for name, script := range scripts {
		for _, m := range scriptMark.FindAllString(script, -1) {
			kind := strings.ToLower(strings.Trim(m, "{}0123456789"))
			if drawing[kind] == nil && counting[kind] == nil {
				t.Errorf("%s: nothing draws %s", name, m)
			}
		}
		for i, form := range forms(script) {
			if len(form) == 0 || slices.ContainsFunc(form, func(p phase) bool { return len(p.lines) == 0 || p.most < p.least }) {
				t.Errorf("%s: form %d says nothing", name, i)
			}
		}
	}
}

func TestPlay(t *testing.T) {
	s := newSession(rand.New(rand.NewPCG(1, 2)), callsOnly)
	s.play("2 make -j{i} {ident} !7> {count} {IDENT}\n| more\\tof it\n@read {path} {offset} =>\n1 = => done", "")
	if len(s.turns) != 5 {
		t.Fatalf("%d turns", len(s.turns))
	}
	first, second, last := s.turns[0], s.turns[2], s.turns[4]
	a, b := strings.Fields(first.calls[0].a), strings.Fields(second.calls[0].a)
	if a[1] != "-j1" || b[1] != "-j2" || a[2] != b[2] {
		t.Errorf("%v, then %v", a, b)
	}
	x, y := strings.Fields(first.res[0].out), strings.Fields(second.res[0].out)
	if first.res[0].code != 7 || number(y[0]) != number(x[0])+1 || x[1] == y[1] || !strings.HasSuffix(first.res[0].out, "\nmore\tof it") {
		t.Errorf("%+v, then %+v", first.res, second.res)
	}
	if o := last.calls[0]; o.do != read || o.path != s.turns[1].calls[0].path || o.n != 181 || last.res[0] != (result{out: "done"}) {
		t.Errorf("%+v: %+v", o, last.res)
	}
}

package looptest

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Label is the kind of a session from WorkAt.
type Label string

// The labels.
const (
	Progress  Label = "progress" // each turn brings something new: another file, test, error, position or count
	Repeats   Label = "repeats"  // the same call with the same result, except for volatile parts
	Waits     Label = "waits"    // it waits for something that proceeds by itself
	Unlabeled Label = ""         // not used by WorkAt
)

// Work is one session of an agent that works, fails and waits, request by request.
type Work struct {
	Name   string // of the situation and the agent, for test messages
	Why    string // the reason for the label
	Label  Label
	Fails  bool     // each turn of a repetition failed, and its result shows that
	Bodies [][]byte // request bodies; each history begins with the messages of the one before
	// Seen holds the indexes of the bodies with the first, second, … occurrence of the repetition. It is empty without
	// one.
	Seen []int
}

// situation is one activity of agents: each turn is a line of the script.
type situation struct{ name, script string }

// WorkAt makes the i-th session of a seed with the label. Situations and agents alternate. The same seed gives
// the same bytes.
func WorkAt(label Label, seed uint64, i int) Work {
	list := map[Label][]situation{Progress: progressing, Repeats: repeating, Waits: waiting}[label]
	sit := list[i%len(list)]
	a := agents[(i/len(list)+i)%len(agents)]
	s := newSession(rand.New(rand.NewPCG(seed, uint64(i)^0x5e55)), callsOnly)
	s.style.agent, s.style.tools, s.style.text = &a, a.tools, a.text
	if a.text {
		s.style.fence = 1
		s.style.system = "You are an autonomous programmer.\nAnswer with a short discussion and exactly one command in a code block. The output comes back to you."
	} else if s.chance(0.4) { // the shell is its only tool
		s.style.tools = toolset{tools: map[verb]string{shell: a.tools.tools[shell]}, argv: a.tools.argv}
	}
	w := Work{Name: fmt.Sprintf("%s/%s/%d-%d", sit.name, a.name, seed, i), Why: sit.name, Label: label}
	s.work(s.IntN(6))
	all := forms(sit.script)
	lines, p, say := all[s.IntN(len(all))][0].lines, s.player(), s.texts()
	w.Fails = label == Repeats
	for n := range s.between(6, 9) {
		st := p.step(lines[n%len(lines)])
		p.next()
		w.Fails = w.Fails && st.code != 0 && (a.codes || !s.style.tools.shelled(st.op))
		s.add(say(), st.op, st.result)
		s.tick(time.Duration(s.between(1, 300)) * time.Second)
		if label == Repeats {
			w.Seen = append(w.Seen, len(s.turns))
		}
	}
	w.Bodies = s.bodies()
	return w
}

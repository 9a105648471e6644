package looptest

import "fmt"

// work appends n varied steps that each bring something new.
func (s *session) work(n int) {
	for range n {
		text := s.say()
		if s.chance(0.2) {
			text = ""
		}
		if !s.style.text && s.chance(0.12) { // parallel reads
			a, b := s.step(), s.step()
			s.turn(turn{text, []op{a.op, b.op}, []result{a.result, b.result}, ""})
			continue
		}
		st := s.step()
		s.add(text, st.op, st.result)
	}
}

// step is a call with its result.
type step struct {
	op
	result
}

// step makes a new step.
func (s *session) step() step {
	f := s.path()
	switch s.IntN(8) {
	case 0, 1:
		return step{op{do: read, path: f}, result{out: s.code(s.between(3, 14))}}
	case 2:
		p := s.ident()
		return step{op{do: grep, a: p, path: s.pick(folders...)}, result{out: s.hits(p, s.between(1, 6))}}
	case 3:
		return step{op{do: list, path: s.folder()}, result{out: s.listing(s.between(3, 10))}}
	case 4:
		return step{s.change(f), s.updated(f)}
	case 5:
		return step{sh("git log -n 3 --oneline -- %s", f), result{out: s.hex(7) + " " + s.say() + "\n" + s.hex(7) + " " + s.say()}}
	case 6:
		return step{sh("wc -l %s", f), result{out: fmt.Sprintf("%d %s", s.between(20, 900), f)}}
	}
	// A failure that is not repeated is normal work, too.
	return step{op{do: read, path: f}, result{"Error: ENOENT: no such file or directory, open '" + f + "'", 1}}
}

func (s *session) change(f string) op {
	return op{do: edit, path: f, a: s.code(1), b: s.code(2)}
}

func (s *session) updated(f string) result {
	return result{out: s.pick("The file has been updated.", "ok", "Successfully replaced text in "+f+".", "Done!\nM "+f)}
}

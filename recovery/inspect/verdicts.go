package inspect

import "github.com/rebound-llm/rebound/recovery"

// fewVerdicts is up to how many of them are compared one by one.
const fewVerdicts = 6

// verdicts are the judged steps of a history with different results.
type verdicts struct {
	list   []*step
	byCall map[recovery.ToolResult]*step // once there are more than a few
}

// key is what a verdict depends on.
func (s *step) key() recovery.ToolResult {
	return recovery.ToolResult{Tool: s.Tool, Arguments: s.Arguments, Content: s.Content}
}

// twin is a judged step with the same call and result, nil without one.
func (v *verdicts) twin(s *step) *step {
	if v.byCall != nil {
		return v.byCall[s.key()]
	}
	for _, other := range v.list {
		if other.key() == s.key() {
			return other
		}
	}
	return nil
}

// keep adds a judged step that has no twin.
func (v *verdicts) keep(s *step) {
	v.list = append(v.list, s)
	if v.byCall == nil && len(v.list) > fewVerdicts {
		v.byCall = make(map[recovery.ToolResult]*step, 4*fewVerdicts)
		for _, other := range v.list {
			v.byCall[other.key()] = other
		}
	} else if v.byCall != nil {
		v.byCall[s.key()] = s
	}
}

// full reports whether there are so many that no more are wanted.
func (v *verdicts) full() bool { return len(v.list) >= maxJudged }

// forget empties the list.
func (v *verdicts) forget() {
	clear(v.list)
	v.list, v.byCall = v.list[:0], nil
}

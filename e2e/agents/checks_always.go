package agents

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// untouched: bytes went through as they were, both ways, and nothing is said to
// have been done.
func untouched(e *Evidence) error {
	if len(e.Sent) != len(e.Model) {
		return fmt.Errorf("the client sent %d requests, the model got %d", len(e.Sent), len(e.Model))
	}
	for i := range e.Sent {
		x, m := &e.Sent[i], &e.Model[i]
		switch {
		case !bytes.Equal(x.Request, m.Request.Raw):
			return fmt.Errorf("request %d was changed: %s", i+1, difference(x.Request, m.Request.Raw))
		case !bytes.Equal(x.Response, m.Sent):
			return fmt.Errorf("answer %d was changed: %s", i+1, difference(m.Sent, x.Response))
		case x.Header.Get("X-Rebound-Recovery") != "":
			return fmt.Errorf("answer %d has X-Rebound-Recovery: %s", i+1, x.Header.Get("X-Rebound-Recovery"))
		case x.Header.Get("X-Rebound-Attempts") != "1":
			return fmt.Errorf("answer %d took %q attempts", i+1, x.Header.Get("X-Rebound-Attempts"))
		}
	}
	return nil
}

func difference(was, is []byte) string {
	i := 0
	for i < min(len(was), len(is)) && was[i] == is[i] {
		i++
	}
	at := func(b []byte) []byte { return b[max(0, i-30):min(len(b), i+60)] }
	return fmt.Sprintf("at byte %d %q became %q", i, at(was), at(is))
}

// Always are the checks of every scenario through the gateway.
func Always() []Check { return []Check{noTrace, paired, ruled, oneNote, fromTheClient} }

// noTrace: nothing that is the gateway's own is in what the client sends or keeps.
func noTrace(e *Evidence) error {
	for i, x := range e.Sent {
		for _, mark := range []string{noteMark, compressedMark, "Do not mention this note"} {
			if bytes.Contains(x.Request, []byte(mark)) {
				return fmt.Errorf("the client's request %d has %q", i+1, mark)
			}
		}
	}
	for i := range e.Outcomes {
		for _, mark := range []string{noteMark, compressedMark} {
			if strings.Contains(e.Outcomes[i].History, mark) {
				return fmt.Errorf("the client's history has %q", mark)
			}
		}
		if e.Outcomes[i].OK && e.Outcomes[i].History == "" {
			return errors.New("the client shows no history")
		}
	}
	return nil
}

// paired: in each request that the model gets, every result answers a call and
// every call has its result.
func paired(e *Evidence) error {
	for i, m := range e.Model {
		if err := m.Request.unpaired(); err != nil {
			return fmt.Errorf("request %d at the model: %w", i+1, err)
		}
	}
	return nil
}

// ruled: no request breaks the rules of its format, as an upstream enforces them.
func ruled(e *Evidence) error {
	for i, m := range e.Model {
		if m.Broken {
			return fmt.Errorf("request %d at the model: %s", i+1, m.Sent)
		}
	}
	return nil
}

// oneNote: a request has one note about its history at most, and one about the
// answer that is asked for again.
func oneNote(e *Evidence) error {
	for i, m := range e.Model {
		all, again := m.Request.Notes(), m.Request.reasks()
		if all-again > 1 || again > 1 {
			return fmt.Errorf("request %d at the model has %d notes, %d of them about its last answer", i+1, all, again)
		}
	}
	return nil
}

// fromTheClient: the tap works. Without it the other checks prove nothing.
func fromTheClient(e *Evidence) error {
	if len(e.Sent) == 0 || len(e.Model) == 0 {
		return fmt.Errorf("%d requests of the client were seen, %d at the model", len(e.Sent), len(e.Model))
	}
	return nil
}

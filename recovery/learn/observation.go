package learn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// The outcomes of an intervention.
const (
	Success  = "success"   // the same target succeeded within two calls
	OtherWay = "other_way" // something else did
	Failure  = "failure"   // the same failure again, only others, or the model merely stopped
	Censored = "censored"  // a person took over: nothing is known
)

// Observation is one judged intervention, an entry of the corpus. It has no text
// but a template of public words.
type Observation struct {
	V        int    `json:"v"`       // of this form
	ID       string `json:"id"`      // of the intervention: judged twice, it counts once
	Session  string `json:"session"` // a hash
	Time     int64  `json:"time"`    // seconds since 1970
	Chain    string `json:"chain"`   // the category's, or edit_failed
	Template string `json:"template,omitempty"`
	Key      string `json:"key,omitempty"`  // of the client: a gateway key's name, or a hash of its own credential
	Task     string `json:"task,omitempty"` // what the agent was at
	Model    string `json:"model,omitempty"`
	Strategy string `json:"strategy,omitempty"` // that stood first in the note; empty without a note
	Outcome  string `json:"outcome"`
}

// version is that of the form of observations.
const version = 1

// Bounds of an observation.
const (
	maxObservation = 1 << 10 // bytes as JSON
	maxID          = 32
	maxModel       = 100
	maxAge         = 60 * 24 * time.Hour
	maxAhead       = 5 * time.Minute // that a replica's clock may be fast
)

// value is what an outcome counts, and whether it counts.
func value(outcome string) (v float64, counts bool) {
	switch outcome {
	case Success:
		return 1, true
	case OtherWay:
		return 0.5, true
	case Failure:
		return 0, true
	}
	return 0, false
}

// Priors are the strategies of each chain with the chance that they help, before
// anything is known. Read only.
type Priors = map[string]map[string]float64

// rules are what is learned, and what an observation must obey.
type rules struct {
	mode       string
	priors     Priors
	vocabulary func() Vocabulary
}

// read decodes an entry. What is malformed, too large, from the future, or names what
// does not exist is refused: whoever wrote it, it teaches nothing.
func (r *rules) read(raw []byte, now time.Time) (o Observation, err error) {
	if len(raw) > maxObservation {
		return o, fmt.Errorf("longer than %d bytes", maxObservation)
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, errors.New("no JSON object of an observation")
	}
	return o, r.check(&o, now)
}

// line is an observation as JSON on one line.
func (o *Observation) line() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // templates have <*>
	_ = enc.Encode(o)        // names and numbers
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

func (r *rules) check(o *Observation, now time.Time) error {
	at := time.Unix(o.Time, 0)
	_, counts := value(o.Outcome)
	_, known := r.priors[o.Chain][o.Strategy]
	switch {
	case o.V != version:
		return fmt.Errorf("version %d, this program has %d", o.V, version)
	case !plain(o.ID, maxID) || o.ID == "", !plain(o.Session, maxID) || o.Session == "", !plain(o.Model, maxModel), !plain(o.Key, maxModel), o.Key == everybody:
		return errors.New("a name that is empty, too long, or no word")
	case at.After(now.Add(maxAhead)) || at.Before(now.Add(-maxAge)):
		return errors.New("from the future, or too old")
	case r.priors[o.Chain] == nil:
		return errors.New("an unknown chain")
	case !known && o.Strategy != "":
		return errors.New("an unknown strategy")
	case !counts && o.Outcome != Censored:
		return errors.New("an unknown outcome")
	case o.Task != "" && o.Task != string(recovery.Exploring) && o.Task != string(recovery.Changing):
		return errors.New("an unknown task")
	case o.Template != "" && !r.vocabulary().permits(o.Template):
		return errors.New("a template with words that are not public")
	}
	return nil
}

// plain reports whether s is one word of visible ASCII characters, or empty.
func plain(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= most
}

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
	OtherWay = "other_way" // something else succeeded
	Failure  = "failure"   // the same failure again, only other failures, or the model merely stopped
	Censored = "censored"  // a person intervened, so the outcome is unknown
)

// Observation is one judged intervention, an entry of the corpus. It contains no text except a template of
// public words.
type Observation struct {
	V        int    `json:"v"`       // version of the format
	ID       string `json:"id"`      // of the intervention; judged twice, it counts once
	Session  string `json:"session"` // a hash
	Time     int64  `json:"time"`    // seconds since 1970
	Chain    string `json:"chain"`   // the category's, or edit_failed
	Template string `json:"template,omitempty"`
	Key      string `json:"key,omitempty"`  // a gateway key's name, or a hash of the client's own credential
	Task     string `json:"task,omitempty"` // the agent's kind of task
	Model    string `json:"model,omitempty"`
	Strategy string `json:"strategy,omitempty"` // the first one in the note; empty without a note
	Outcome  string `json:"outcome"`
}

// version is the current format of observations.
const version = 1

// Limits of an observation.
const (
	maxObservation = 1 << 10 // bytes as JSON
	maxID          = 32
	maxModel       = 100
	maxAge         = 60 * 24 * time.Hour
	maxAhead       = 5 * time.Minute // tolerance for replicas with fast clocks
)

// value returns the value of an outcome, and whether it counts.
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

// Priors are the strategies of each chain with their prior probability to help. They are read-only.
type Priors = map[string]map[string]float64

// rules hold the mode of learning and the requirements on an observation.
type rules struct {
	mode       string
	priors     Priors
	vocabulary func() Vocabulary
}

// read decodes and checks an entry. It refuses entries that are malformed, too large, from the future, or with
// unknown names, because anyone may have written them.
func (r *rules) read(raw []byte, now time.Time) (o Observation, err error) {
	if len(raw) > maxObservation {
		return o, fmt.Errorf("longer than %d bytes", maxObservation)
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, errors.New("no JSON object of an observation")
	}
	return o, r.check(&o, now)
}

// line returns an observation as JSON on one line.
func (o *Observation) line() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // templates contain <*>
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
	case !plain(o.ID, maxID) || o.ID == "", !plain(o.Session, maxID) || o.Session == "", !plain(o.Model, maxModel), !plain(o.Key, maxModel):
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

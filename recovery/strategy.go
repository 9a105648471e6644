package recovery

import "time"

// Strategy is one way to retry. Propose describes the next attempt after a failure; false means that the strategy cannot
// help. It is pure: it makes no I/O and does not sleep.
type Strategy struct {
	Name    string
	Propose func(s *Situation, f *Failure) (Action, bool)
}

// The strategies of the engine itself, which no plan names.
const (
	StrategyOriginal = "original" // sends the client's own bytes after a target refused an edited request
	StrategyParallel = "parallel" // starts an attempt beside a silent one
	StrategyListen   = "listen"   // reads the rest of an answer that the server continues although the connection broke
	StrategyFetch    = "fetch"    // asks a server once for an answer that it may have stored
	StrategyKnown    = "known"    // repeats a target's refusal that the credential's quota is used up; makes no attempt
)

// EngineStrategies returns the names of those that make attempts.
func EngineStrategies() []string {
	return []string{StrategyOriginal, StrategyParallel, StrategyListen, StrategyFetch}
}

// Action describes the next attempt.
type Action struct {
	Strategy string
	Target   int           // index into the exchange's candidates
	Wait     time.Duration // before the attempt
	Stated   bool          // the upstream stated the wait
	Resend   bool          // a blind resend of the same bytes to the same target
	Edits    []Edit        // for that candidate, from now on
	Once     bool          // Edits concern how this request combines its fields: nothing about the target is learned
	Account  bool          // Edits concern the account whose key the target got, and no other one
	Plain    bool          // no edits: the target refused an edited request
	Resume   *Resume
	Fit      bool   // the engine shortens the history first; if it cannot, it asks the next strategy
	Note     string // ephemeral text for the model, in this attempt only
	Tool     string // the tool that the model must call; ToolNone forbids any
	Output   int    // limit of the output in tokens, in this attempt only; 0 for no change
	Reask    bool   // the attempt follows a flawed answer
	carried  bool   // Note, Tool and Explain are copied from the attempt before
	Explain  bool   // the attempt asks the model to explain the failure; the answer is marked as the gateway's
}

// ToolNone is the Action.Tool that forbids calls.
const ToolNone = "\x00none"

// Situation is the input of strategies. They must not change it.
type Situation struct {
	Exchange *Exchange
	Config   *Config
	Health   Health
	Now      time.Time
	Jitter   func() float64 // uniform in [0,1)
	// Changes reports whether an edit changes the request as it goes to a candidate.
	Changes func(candidate int, ed Edit) bool
}

// Current returns the index of the candidate that failed.
func (s *Situation) Current(f *Failure) int {
	for i := range s.Exchange.Candidates {
		if s.Exchange.Candidates[i].Target == f.Target {
			return i
		}
	}
	return 0
}

// Next returns the best available candidate other than the current one for which ok returns true (nil accepts all). After
// a failure of the target, another upstream or model is preferred to another key of the same one.
func (s *Situation) Next(f *Failure, ok func(*Choice) bool) (int, bool) {
	x := s.Exchange
	second := -1
	for i := range x.Candidates {
		c := &x.Candidates[i]
		if c.Target == f.Target || c.Unusable() || c.Silent || c.Tries > 1 || (ok != nil && !ok(c)) {
			continue
		}
		if !s.Health.Check(c.Target).Ready {
			continue
		}
		same := c.Target.alike(f.Target)
		if same && f.Scope() == ScopeTarget && !f.Spec.Cools {
			if second < 0 {
				second = i
			}
			continue
		}
		return i, true
	}
	return second, second >= 0
}

// Backoff returns the wait before resend n, counted from 0: a random value in the upper quarter of a bound that doubles
// each time. So each wait is at least 1.5 times the one before, until BackoffMax is reached.
func (s *Situation) Backoff(n int) time.Duration {
	d := s.Config.BackoffMin
	for ; n > 0 && d < s.Config.BackoffMax; n-- {
		d *= 2
	}
	return time.Duration((3 + s.Jitter()) / 4 * float64(min(d, s.Config.BackoffMax)))
}

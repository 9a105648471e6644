package recovery

import "time"

// EventName is the stable name of a kind of event.
type EventName string

// The events of the failure path. What stands behind each is its line in
// docs/observability.md.
const (
	EventRecoveryAttempt EventName = "error_recovery_attempt" // an attempt failed and another follows (with observed: would have followed)
	EventRecoverySuccess EventName = "error_recovery_success" // a request with a failed attempt was answered
	EventRecoveryFailed  EventName = "error_recovery_failed"  // nothing is left to try; the client got an error
	EventDegraded        EventName = "recovery_degraded"      // a part of the recovery was left out, or a flawed answer was delivered; cause says which
	EventStreamResumed   EventName = "stream_resumed"         // a broken or stalled answer is continued; way is fetch, prefill, replay or ask
	EventTargetCooled    EventName = "target_cooled"          // a key is not used until the time in until
	EventLateAnswer      EventName = "late_answer"            // an attempt that lost to another was read to its end; cause is answered, failed, dead or given up; cost is what it used
	EventFallbackUsed    EventName = "fallback_used"          // a target of a later rank answers for a model; sent when that begins and once a minute, with count requests
	EventCompressed      EventName = "trajectory_compressed"  // a history was shortened; cause is known, or the class of the refusal
	EventTruncated       EventName = "context_truncated"      // a server silently read far less than was sent
	EventCallRepaired    EventName = "tool_call_repaired"     // an answer was repaired; repairs names steps and tools
	EventToolFailure     EventName = "tool_failure_detected"  // the latest result of a tool is a failure
	EventGuidance        EventName = "guidance_injected"      // the model got a note (with observed or held_out: would have got one)
	EventLoop            EventName = "loop_detected"          // the history ends with a repetition
	EventGuidanceOutcome EventName = "guidance_outcome"       // the next turn after a failure; cause is recovered, other or repeated
	EventGuidanceJudged  EventName = "guidance_judged"        // the result of a note within two calls; cause is success, other_way, failure or censored
	EventPlanMade        EventName = "plan_made"              // a planner was asked in the background, or learned knowledge replaced it (source learned); cause says why a plan was useless
	EventApproval        EventName = "plan_approval"          // approval of a plan was requested, or decided; cause is waiting, approved, refused or expired
	EventBreakerOpened   EventName = "breaker_opened"         // a target is not used until a probe succeeds; until is the time of the first probe. With tool and category: a session was stopped
	EventBreakerClosed   EventName = "breaker_closed"         // a target is used again. With tool and category: a session continues
	EventRequestDone     EventName = "request_done"           // a request finished. Logged only if something happened or it was slow (log.slow), or always with log.requests
)

// Event is one thing that happened, without any prompt or answer text.
// Zero fields are left out when it is rendered. Values are copied freely and never changed.
type Event struct {
	Name     EventName
	Time     time.Time
	Request  string // request id
	Key      string // name of the gateway key, empty without one
	Session  string
	Target   Target
	Model    string // as the client named it
	Format   string // of request_done, what it speaks: chat, responses or messages; empty for what is forwarded
	Attempt  int
	Count    int  // of fallback_used: requests; of a refused request: refusals like it since the last event about them
	Fallback bool // of request_done: a target of a later rank answered
	Class    Class
	Flaw     FlawKind // of an answer that was asked again; empty for other failures
	Rule     string
	Strategy string
	Way      Way // of stream_resumed: how the answer is continued
	Status   int
	Streamed bool
	Wait     time.Duration // planned wait before the next attempt
	Until    time.Time     // end of a cool-down or an open breaker
	Duration time.Duration // of the attempt, or of the request
	Prepared time.Duration // of request_done: from its arrival to the first attempt
	TTFB     time.Duration // first byte of the answer for the client
	Upstream string        // the upstream's own id of the request, of the attempt that failed or answered
	Recovery string        // what was done, as in X-Rebound-Recovery
	Mode     Mode
	Observed bool // recorded only: observe mode kept the action from being taken
	Cause    string
	Cost     Usage   // spent beyond the final answer
	Usage    Usage   // of the final answer, as reported
	Finish   Finish  // why the model ended the final answer
	Extra    float64 // of request_done: the part of Spent that Cost is
	Spent    float64 // what the request cost, where prices are configured, in their currency
	Client   string
	Peer     string // address of a client that was turned away
	Others   bool   // of request_done: the request had other events, so this one ends what they began
	// Of trajectory_compressed, tool_call_repaired, and those of the agent's own failures.
	Compressed *Compression
	Repairs    []Repair
	Failure    *ToolFailure // also of a session's breaker
	Loop       *Loop
	Advice     *Advice
	Plan       *Plan     // bare
	Progress   *Progress // of the agent's own failures and loops, nil where it is not known
	// Attempts are all of request_done's, in the order of their start. They never
	// change afterwards, but who keeps the slice may keep the request with it.
	Attempts []Record
}

// Uneventful reports whether e only tells that a request was answered, and nothing
// happened to it.
func (e *Event) Uneventful() bool {
	return e.Name == EventRequestDone && e.Attempt <= 1 && e.Status < 400 &&
		e.Class == "" && e.Recovery == "" && e.Cause == "" && !e.Observed && !e.Others && e.Cost == (Usage{})
}

// Advice is what the model was told about its tools' failure or its own loop.
type Advice struct {
	Category   Category // empty for a loop
	Loop       LoopKind
	Strategies []string // that were proposed, in order
	Count      int      // how often the same happened so far
	HeldOut    bool     // withheld: the session is part of the hold-out share
	Withheld   bool     // withheld: what was learned says that the agent does as well without
	// For what learns from it; nothing does where Chain is empty. See Question.
	Chain       string
	Key         string
	Template    string // what the failure's line says in public words
	Task        Task
	Fingerprint uint64
	At          int
}

// Usage is tokens as an upstream reported them.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int
}

// Billed is the usage in units of uncached input: what a cache write costs more,
// and what a cache read costs less, at the prices that are usual (1.25 and 0.1).
// Input is taken to include what was read from and written to the cache, as
// OpenAI-compatible upstreams report it. Output is left out.
func (u Usage) Billed() float64 {
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	return float64(fresh) + 1.25*float64(u.CacheWrite) + 0.1*float64(u.CacheRead)
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Reasoning + v.Reasoning}
}

// Observer learns of events. Observe never blocks, never fails a request, and
// is safe for concurrent use.
type Observer interface {
	Observe(Event)
}

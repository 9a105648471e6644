package recovery

import "time"

// EventName is the stable name of a kind of event.
type EventName string

// The events of the failure path. The comment after each is its line in docs/observability.md.
const (
	EventRecoveryAttempt EventName = "error_recovery_attempt" // an attempt failed and another follows (with observed: would have followed)
	EventRecoverySuccess EventName = "error_recovery_success" // a request with a failed attempt was answered
	EventRecoveryFailed  EventName = "error_recovery_failed"  // nothing is left to try; the client got an error
	EventDegraded        EventName = "recovery_degraded"      // a part of the recovery was left out, or a flawed answer was delivered; cause says which
	EventStreamResumed   EventName = "stream_resumed"         // a broken or stalled answer is continued; way is listen, fetch, prefill, replay or ask
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

// Event describes one thing that happened, without any prompt or answer text. Rendering leaves out zero fields. Events
// may be copied and are never changed.
type Event struct {
	Name EventName
	Time time.Time
	Origin
	Target   Target
	Attempt  int // its number; of request_done: how many there were
	Class    Class
	Rule     string
	Status   int
	Upstream string // the upstream's own id of the request, of the attempt that failed or answered
	Cause    string
	Strategy string
	Observed bool          // observe mode only recorded the action
	Duration time.Duration // of the attempt, of the extra call, or of the request
	Cost     Usage         // of attempts other than the final answer
	Spent    float64       // price of all that the event reports, in the currency of the configured prices; 0 without
	Wait     time.Duration // planned wait before the next attempt, or of a cool-down
	Until    time.Time     // end of a cool-down, an open breaker, or the wait for approval
	Count    int           // of fallback_used: requests; of a refused request: refusals like it since the last event about them

	Flaw       FlawKind // of an answer that was asked for again; empty for other failures
	Way        Way      // of stream_resumed: how the answer is continued
	Compressed *Compression
	Repairs    []Repair // of tool_call_repaired
	Trouble
	Ending
}

// Origin is the request that an event is about. It is zero in events about a target alone.
type Origin struct {
	Request  string // request id
	Key      string // name of the gateway key, empty without one
	Session  string
	Model    string // as the client named it
	Mode     Mode
	Streamed bool
}

// Trouble is what an event says about the agent's own failures, their notes and plans.
type Trouble struct {
	Failure  *ToolFailure // also of a session's breaker
	Loop     *Loop
	Advice   *Advice
	Plan     *Plan     // without text
	Progress *Progress // nil if unknown
}

// Ending is what only request_done says.
type Ending struct {
	Format   string        // chat, responses or messages; empty for a forwarded request
	Fallback bool          // a target of a lower priority answered
	Prepared time.Duration // from arrival to the first attempt
	TTFB     time.Duration // time to the answer's first byte for the client
	Recovery string        // the recoveries, as in X-Rebound-Recovery
	Usage    Usage         // of the final answer, as reported
	Finish   Finish        // why the model ended the final answer
	Extra    float64       // the price of Cost, as a part of Spent
	Client   string
	Peer     string // address of a client whose request was rejected
	Others   bool   // the request had other events
	// Attempts are all attempts, in order of their start. They never change afterwards, but keeping the slice may keep
	// the request in memory.
	Attempts []Record
}

// Uneventful reports whether e is the request_done of a request that was answered without any recovery.
func (e *Event) Uneventful() bool {
	return e.Name == EventRequestDone && e.Attempt <= 1 && e.Status < 400 &&
		e.Class == "" && e.Recovery == "" && e.Cause == "" && !e.Observed && !e.Others && e.Cost == (Usage{})
}

// Advice describes a note about a tool's failure or a loop.
type Advice struct {
	Category   Category // empty for a loop
	Loop       LoopKind
	Strategies []string // that were proposed, in order
	Count      int      // how often the same has happened so far
	HeldOut    bool     // the note was withheld, since the session is in the control group
	Withheld   bool     // the note was withheld, since past outcomes are no worse without it
	// For learning, unless Chain is empty. See Question.
	Chain       string
	Key         string
	Template    string // the failure's line reduced to public words
	Task        Task
	Fingerprint uint64
	At          int
}

// Usage is the number of tokens that an upstream reports.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int
}

// Billed returns the input in units of uncached tokens, at the usual prices: a token written to the cache counts
// 1.25, one read from it 0.1. It assumes that Input includes both, as OpenAI-compatible upstreams report it. Output
// is left out.
func (u Usage) Billed() float64 {
	fresh := max(0, u.Input-u.CacheRead-u.CacheWrite)
	return float64(fresh) + 1.25*float64(u.CacheWrite) + 0.1*float64(u.CacheRead)
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.Reasoning + v.Reasoning}
}

// Observer receives events. Observe never blocks, never fails a request, and
// is safe for concurrent use.
type Observer interface {
	Observe(Event)
}

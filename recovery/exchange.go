package recovery

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Exchange is one client request and all that happened to it. One goroutine
// owns it; parallel attempts get copies of what they need. Body never changes.
type Exchange struct {
	ID         string
	Body       *transcript.Body
	Model      string // as the client named it
	Key        string // name of the client's gateway key, empty without one
	Credential string // label of the client's own credential, as used in target keys
	Secret     string // the client's own credential itself, to seal what is stored of the session; never stored or told
	Session    string // empty on the first request of a conversation
	Home       Target // where what it goes on from was made: nowhere else, and only with that key; Model is empty
	Hint       string // the client's own name of the conversation, hashed with its credential; empty without one
	Budget     Budget // of the session; zero is none
	Affinity   uint64 // equal for requests that share a prompt prefix; 0 is none
	Pin        string // session and turn: a failover is kept while it lasts; empty without a session
	Stays      bool   // no other account may serve it
	Keeps      bool   // what the ids of its answer stand for can be kept, for clients to name them to a server that never had it
	Mode       Mode
	Streaming  bool
	Trusted    bool          // it pays with the gateway's credentials, or with none of its own
	Patience   time.Duration // the client's own time-out, 0 when it did not say
	Started    time.Time
	// Side reports whether the request serves the client rather than the
	// conversation: a title, its own summary, a probe. Nil is no.
	Side func() bool
	// Completer makes extra calls on behalf of this exchange; nil makes none.
	Completer Completer

	Findings

	// Candidates are the targets that serve this request, in order of
	// preference, with what was tried of each. An empty slice is memory for them.
	Candidates []Choice
	// Attempts are all attempts so far, in order of their start. An empty slice
	// is memory for them.
	Attempts []Record

	progress
	result
}

// progress is what the engine has done for an exchange so far.
type progress struct {
	config     *Config          // of the engine that runs it
	state      transcript.State // what of the request is on a server
	fetched    bool             // its server was asked for the answer that it was to keep
	made       []Made           // who made the reasoning that the request carries; nil where its format has none
	sealed     int              // elements of that
	deadline   time.Time        // for the first byte
	completing time.Duration    // that extra calls have taken
	actions    []string         // what was done, for X-Rebound-Recovery
	extra      int              // see Extra
	plain      bool             // edits are off: a target refused what they made
	empties    int              // empty answers so far
	free       int              // attempts that cost nothing, and
	idle       time.Duration    // the time that these and the waits after them took
	reasks     int              // times that the model was asked again for a flawed answer
	notes      int              // notes about upstream failures so far
	explained  bool             // the model was asked to explain a refusal
	told       atomic.Bool      // an event tells of it
}

// result is what came of an exchange.
type result struct {
	ended    time.Time // see Ended
	answered Target    // where the answer came from
	usage    Usage     // of the answer
	finish   Finish    // of the answer
	spent    Usage     // of attempts that did not become the answer
	retained bool      // see Retain
	fallback bool      // a target of a later rank answered
}

// Findings are what the stages found out before the first attempt.
type Findings struct {
	Results  []ToolFailure // what the tools answered since the model's last turn, successes included
	Loops    []Loop        // that the history ends with
	Turn     Turn          // where the history stands; zero without new results
	Ladder   Ladder        // how far the help for the agent has come; zero where nothing is wrong
	Failing  []Category    // kinds of failures that came at once, three or more: the environment may be broken
	Plan     *Plan         // how the model may go on where rules do not know; nil for none
	Progress Progress      // whether the agent gets on; zero where nothing is wrong
	Barred   Deeds         // what persons' words and the instructions rule out; read only where something is wrong
	Guidance string        // a note for the model, for every attempt; empty for none
	Force    string        // the tool that the model must call, beside Guidance; empty leaves that to it
	Reply    *Reply        // the gateway's own answer: no attempt is made
	Fitted   *Fitted       // what goes upstream in place of Body; nil for Body itself
	Fitting  Fitting       // makes it smaller after a refusal; nil where nothing can
}

// Refused reports whether a person or a policy refused a call: another way around that
// is not for the gateway to suggest.
func (f *Findings) Refused() bool {
	return slices.ContainsFunc(f.Results, func(r ToolFailure) bool { return r.Failed && r.Rule == "refusal" })
}

// FirstFailed is the first result of a call that failed, nil for none.
func (f *Findings) FirstFailed() *ToolFailure {
	if i := slices.IndexFunc(f.Results, func(r ToolFailure) bool { return r.Failed }); i >= 0 {
		return &f.Results[i]
	}
	return nil
}

// Repetition is the loop that occurred most often, nil for none.
func (f *Findings) Repetition() (most *Loop) {
	for i := range f.Loops {
		if l := &f.Loops[i]; l.Count >= 2 && (most == nil || l.Count > most.Count) {
			most = l
		}
	}
	return most
}

// Choice is a candidate within one exchange.
type Choice struct {
	Candidate
	Tries     int    // attempts made
	Waits     int    // waits for this target
	Silent    bool   // an attempt was never answered, or stopped in the middle
	Excluded  bool   // asking again cannot help this request
	Small     bool   // its window cannot hold the request as it is now
	Resumed   bool   // a continuation of it failed
	Useless   []Way  // to continue an answer here
	Repeats   bool   // it was seen to give a sampled answer once more, word for word
	Edits     []Edit // found necessary by this exchange
	LastClass Class

	oddities []string // of its answers, see Failure.oddity
	same     int      // how often the target said the same 500 to the same bytes, which is
	said     string   // without its numbers

	refused bool   // the client's own bytes were refused
	learned bool   // what is known of the target changed the request,
	doubted bool   // which was refused
	useless []Edit // edits that did not help
	latest  []Edit // of the last action
	passing []Edit // that answer to the request itself, not to what the target takes: for this exchange only
	message string // the refusal that they answered
}

// Had reports whether an edit was made for this candidate, helpful or not.
func (c *Choice) Had(same func(Edit) bool) bool {
	return slices.ContainsFunc(c.Edits, same) || slices.ContainsFunc(c.useless, same)
}

// retractUseless removes the latest edits if the target refused them with the same message as before.
func (c *Choice) retractUseless(message string) {
	if len(c.latest) > 0 && message == c.message {
		c.Edits = c.Edits[:max(0, len(c.Edits)-len(c.latest))]
		c.useless = append(c.useless, c.latest...)
	}
	c.latest, c.message = nil, message
}

// Out reports whether the candidate cannot serve this request.
func (c *Choice) Out() bool { return c.Excluded || c.Small }

// Reply is an answer that the gateway gives in a model's place.
type Reply struct {
	Action string // what was done, for the response header
	Text   string // what the client's model would have said
	Error  bool   // an error instead, for clients that demand structure; Text is its message
}

// Record is one attempt of an exchange.
type Record struct {
	Target   Target
	Class    Class // empty for the attempt that answered
	Strategy string
	Parallel bool
	Started  time.Time
	Duration time.Duration
	Upstream string // the upstream's own id of the request; empty where it gave none
}

// Client is whose request it is, as a name that is no secret: a gateway key, or the client's own
// credential; empty where nobody tells clients apart.
func (x *Exchange) Client() string {
	if x.Key != "" {
		return x.Key
	}
	return x.Credential
}

// Spoken reports whether a person has said something since the tools answered: what they
// say goes before what the gateway would.
func (x *Exchange) Spoken() bool {
	list := x.Body.Messages()
	last := list[len(list)-1]
	return last.Role == transcript.RoleUser && !slices.ContainsFunc(x.Results, func(r ToolFailure) bool { return r.Index == last.Index })
}

// Actions returns what was done so far, for the response header.
func (x *Exchange) Actions() []string { return x.actions }

// Tried reports how many attempts were made.
func (x *Exchange) Tried() int { return len(x.Attempts) }

// Charged reports how many of the attempts may have cost something.
func (x *Exchange) Charged() int { return len(x.Attempts) - x.free }

// AcceptEmpty reports whether an empty answer is delivered: the second one is.
func (x *Exchange) AcceptEmpty() bool { return x.empties > 0 }

// Extra is the spending so far on continuations, re-asks, parallel starts and
// summaries, in units of the request's own input.
func (x *Exchange) Extra() int { return x.extra }

// Reasks is how often the model was asked again for a flawed answer.
func (x *Exchange) Reasks() int { return x.reasks }

// Explained reports whether the model was asked to explain a refusal.
func (x *Exchange) Explained() bool { return x.explained }

// Notes is how many notes about upstream failures the model was given.
func (x *Exchange) Notes() int { return x.notes }

// Retain says that the request's bytes are read on after the exchange has ended:
// their buffer must not be used again.
func (x *Exchange) Retain() { x.retained = true }

// Retained reports whether anybody said so.
func (x *Exchange) Retained() bool { return x.retained }

// Ended is when the client had the complete answer; zero where it got none, or
// one that was known to be flawed.
func (x *Exchange) Ended() time.Time { return x.ended }

// current is the request as it goes upstream, before a target's own edits.
func (x *Exchange) current() *transcript.Body {
	if x.Fitted != nil {
		return x.Fitted.Body
	}
	return x.Body
}

// Settled returns where the answer came from, what it used, and what was spent beyond it.
func (x *Exchange) Settled() (t Target, answer, beyond Usage) { return x.answered, x.usage, x.spent }

// Fallback reports whether a target of a later rank than the first answered.
func (x *Exchange) Fallback() bool { return x.fallback }

// Finish is why the model ended the answer that the client got.
func (x *Exchange) Finish() Finish { return x.finish }

// Event is an event of the exchange: what all of them tell. Only the last one,
// request_done, says whether there were others; fallback_used is none, since it tells of many requests
// at once. It may be called by several goroutines.
func (x *Exchange) Event(name EventName) Event {
	others := x.told.Load()
	if name != EventRequestDone && name != EventFallbackUsed && !others {
		x.told.Store(true)
	}
	return Event{Others: name == EventRequestDone && others, Name: name, Time: time.Now(), Request: x.ID, Key: x.Key, Session: x.Session, Model: x.Model, Mode: x.Mode, Streamed: x.Streaming}
}

// Did notes an action for the response header and the request's event, once.
func (x *Exchange) Did(action string) {
	if action != "" && !slices.Contains(x.actions, action) {
		x.actions = append(x.actions, action)
	}
}

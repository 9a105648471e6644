package recovery

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Exchange is one client request with everything that happened to it. One goroutine
// owns it; parallel attempts get copies.
type Exchange struct {
	Request
	Caller
	Conversation
	Findings

	// Candidates are the targets that can serve this request, in order of preference, with their state in this exchange.
	// An empty slice with capacity is used as memory.
	Candidates []Choice
	// Attempts are all attempts so far, in order of their start. An empty slice with capacity is used as memory.
	Attempts []Record
	// Completer makes extra calls on behalf of this exchange; nil makes none.
	Completer Completer

	progress
	result
}

// Request is what the client asked for. Body never changes.
type Request struct {
	ID        string
	Body      *transcript.Body
	Model     string // as the client named it
	Mode      Mode   // a switch of the target may lower it
	Streaming bool
	Started   time.Time
	Patience  time.Duration // the client's own timeout, 0 if unknown
	// LongContext is set if the client asks for a larger context window than the model's usual one.
	LongContext bool
	// Betas are the sorted names of the features in test at the provider that the client asks for with headers. They decide
	// what a target refuses.
	Betas Betas
}

// Caller is who asks.
type Caller struct {
	Key        string // name of the client's gateway key, empty without one
	Credential string // label of the client's own credential, as used in target keys
	Secret     string // the client's own credential, which encrypts the session's stored data; never stored, logged or shown
	Trusted    bool   // the request uses the gateway's credentials, or none
}

// Conversation is what the request continues, and what binds it to a target.
type Conversation struct {
	Session  string // empty on the first request of a conversation
	Hint     string // the client's own name of the conversation, hashed with its credential; empty without one
	Pin      string // session and turn, whose target stays the same after a failover; empty without a session
	Affinity uint64 // equal for requests that share a prompt prefix; 0 for none
	Budget   Budget // of the session; zero means no limit
	Home     Target // upstream and key that hold the response this request continues: no other target can serve it; Model is empty
	Stays    bool   // no other account may serve the request
	Keeps    bool   // the gateway can store the answer under its id, so that later requests may name an id that no server knows
	// Side reports whether the request is not part of the conversation but serves the client itself: a title, its own
	// summary, a probe. Nil means no.
	Side func() bool
	// Stored reads all values of the session from the store in one round trip; nil means that each is read alone.
	Stored Reader
	// Changed lists the keys of the session's values that the request has changed. Its answer waits until they are copied.
	Changed []string
}

// Reader returns values of a store in the order of their keys, nil for a missing one.
type Reader interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
}

// From returns the reader for the session's values: Stored or, without it, the store.
func (c *Conversation) From(store Reader) Reader {
	if c.Stored != nil {
		return c.Stored
	}
	return store
}

// progress is what the engine has done for an exchange so far.
type progress struct {
	config     *Config          // of the engine that runs the exchange
	state      transcript.State // the parts of the request that a server holds
	fetched    bool             // the server was asked for a stored answer
	made       []Made           // the accounts that made the reasoning in the request; nil if its format has none
	sealed     int              // number of reasoning elements in the request that only their account can read
	deadline   time.Time        // for the first byte of the answer
	completing time.Duration    // spent in extra calls to models
	actions    []string         // recoveries so far, for the header X-Rebound-Recovery
	extra      int              // see Extra
	plain      bool             // no edits any more, since a target refused an edited request
	empties    int              // empty answers so far
	free       int              // attempts that cost nothing
	idle       time.Duration    // time that free attempts and the waits after them took
	reasks     int              // how often the model was asked again after a flawed answer
	notes      int              // notes about upstream failures so far
	explained  bool             // the model was asked to explain a refusal
	hasEvents  atomic.Bool      // an event of the exchange was sent
	retained   atomic.Int32     // how often Retain was called and not yet released; -1 after Free
	unused     func()           // see Free
}

// result describes how an exchange ended.
type result struct {
	ended    time.Time // see Ended
	answered Target    // target of the answer
	usage    Usage     // of the answer
	finish   Finish    // of the answer
	spent    Usage     // of the other attempts
	partial  Usage     // see Partial
	fallback bool      // a target of a lower priority answered
}

// Findings are the results of the stages, which run before the first attempt.
type Findings struct {
	Results  []ToolFailure // verdicts on the tool results since the model's last turn, successes included
	Loops    []Loop        // repetitions at the end of the history
	Turn     Turn          // position in the history; zero without new results
	Ladder   Ladder        // level of help for the agent; zero if nothing is wrong
	Failing  []Category    // kinds of recent failures, if there are three or more: the environment may be broken
	Plan     *Plan         // a planner's proposal for a stuck agent; nil for none
	Progress Progress      // the agent's progress; zero if nothing is wrong
	Barred   Deeds         // actions that users or instructions forbid; set only if something is wrong
	Guidance string        // the note for the model, on every attempt; empty for none
	Force    string        // the tool that the model must call; empty leaves the choice to the model
	Reply    *Reply        // the gateway's own answer, in place of any attempt
	Fitted   *Fitted       // the shortened request that goes upstream; nil if that is Body
	Fitting  Fitting       // shortens the request after a refusal; nil if nothing can
}

// Refused reports whether a person or a policy refused a call. Then the gateway suggests no alternative.
func (f *Findings) Refused() bool {
	return slices.ContainsFunc(f.Results, func(r ToolFailure) bool { return r.Failed && r.Rule == "refusal" })
}

// FirstFailed returns the first failed result, nil if there is none.
func (f *Findings) FirstFailed() *ToolFailure {
	if i := slices.IndexFunc(f.Results, func(r ToolFailure) bool { return r.Failed }); i >= 0 {
		return &f.Results[i]
	}
	return nil
}

// Repetition returns the loop with the most repetitions, nil if there is none.
func (f *Findings) Repetition() (most *Loop) {
	for i := range f.Loops {
		if l := &f.Loops[i]; l.Count >= 2 && (most == nil || l.Count > most.Count) {
			most = l
		}
	}
	return most
}

// Choice is a candidate with its state in one exchange.
type Choice struct {
	Candidate
	Tries      int    // attempts made
	Waits      int    // waits for this target
	Silent     bool   // an attempt got no answer, or its answer stopped in the middle
	Excluded   bool   // another attempt cannot help this request
	Small      bool   // its context window is too small for the current request
	Resumed    bool   // a continuation failed here
	FailedWays []Way  // ways to continue an answer that failed here
	Repeats    bool   // it repeats a sampled answer word for word
	Edits      []Edit // edits that the target needs, as far as this exchange has learned

	oddities   []string // flaws of its answers, see Failure.oddity
	equal500s  int      // how often the target answered the same bytes with the same 500
	message500 string   // message of that 500, without its numbers

	refused      bool     // the client's own bytes were refused
	learned      bool     // learned edits changed the request
	doubted      bool     // the request with learned edits was refused
	failedEdits  []Edit   // edits that did not help
	latest       []Edit   // of the last action
	requestEdits []Edit   // edits that concern this request rather than the target: they are not learned
	accountEdits []Edit   // edits that concern the account
	noBetas      []string // of the latest attempt, see Attempt.NoBetas
	message      string   // the refusal that latest responds to
}

// Had reports whether this candidate already got an edit, helpful or not.
func (c *Choice) Had(same func(Edit) bool) bool {
	return slices.ContainsFunc(c.Edits, same) || slices.ContainsFunc(c.failedEdits, same)
}

// retractUseless removes the latest edits if the target refused them with the same message as before.
func (c *Choice) retractUseless(message string) {
	if len(c.latest) > 0 && message == c.message {
		c.Edits = c.Edits[:max(0, len(c.Edits)-len(c.latest))]
		c.failedEdits = append(c.failedEdits, c.latest...)
	}
	c.latest, c.message = nil, message
}

// Unusable reports whether the candidate cannot serve this request.
func (c *Choice) Unusable() bool { return c.Excluded || c.Small }

// exclude excludes a target, whatever its key.
func (x *Exchange) exclude(t Target) {
	for i := range x.Candidates {
		c := &x.Candidates[i]
		c.Excluded = c.Excluded || c.Target.alike(t)
	}
}

// Reply is an answer that the gateway gives instead of a model.
type Reply struct {
	Action string // for the header X-Rebound-Recovery
	Text   string // text of the assistant's message
	Error  bool   // answer with an error whose message is Text, for clients that demand structured output
}

// Record is one attempt of an exchange.
type Record struct {
	Target   Target
	Class    Class // empty for the attempt that answered
	Strategy string
	Parallel bool
	Started  time.Time
	Duration time.Duration
	Upstream string // the upstream's request id; empty if it sent none
}

// Client names the client without a secret: its gateway key, or the label of its own credential; empty if clients
// cannot be distinguished.
func (c *Caller) Client() string {
	if c.Key != "" {
		return c.Key
	}
	return c.Credential
}

// Windowed returns the target under which its context window for this request is known.
func (r *Request) Windowed(t Target) Target {
	if r.LongContext {
		t.Model += " (long context)"
	}
	return t
}

// Known returns the target under which it is known what it refuses of requests like this.
func (r *Request) Known(t Target) Target { return r.Betas.Known(t) }

// PersonSpokeLast reports whether a person wrote something after the tool results. Their words take precedence over advice.
func (x *Exchange) PersonSpokeLast() bool {
	list := x.Body.Messages()
	last := list[len(list)-1]
	return last.Role == transcript.RoleUser && !last.Reminder() && !slices.ContainsFunc(x.Results, func(r ToolFailure) bool { return r.Index == last.Index })
}

// Actions returns the recoveries so far, for the header X-Rebound-Recovery.
func (x *Exchange) Actions() []string { return x.actions }

// Tried returns the number of attempts.
func (x *Exchange) Tried() int { return len(x.Attempts) }

// Charged returns the number of attempts that may have cost something.
func (x *Exchange) Charged() int { return len(x.Attempts) - x.free }

// AcceptEmpty reports whether an empty answer is delivered: true after the first one.
func (x *Exchange) AcceptEmpty() bool { return x.empties > 0 }

// Extra returns the spending so far on continuations, re-asks, parallel starts and summaries, in multiples of the
// request's own input.
func (x *Exchange) Extra() int { return x.extra }

// Reasks returns how often the model was asked again after a flawed answer.
func (x *Exchange) Reasks() int { return x.reasks }

// Explained reports whether the model was asked to explain a refusal.
func (x *Exchange) Explained() bool { return x.explained }

// Notes returns the number of notes about upstream failures that the model got.
func (x *Exchange) Notes() int { return x.notes }

// Retain declares that the request's bytes are read until release is called, even after the end of the exchange.
func (x *Exchange) Retain() (release func()) {
	x.retained.Add(1)
	return x.release
}

// Free calls unused as soon as everyone who called Retain has released the request's bytes. Call Free once, after the exchange.
func (x *Exchange) Free(unused func()) {
	x.unused = unused
	x.release()
}

func (x *Exchange) release() {
	if x.retained.Add(-1) < 0 {
		x.unused()
	}
}

// Fallback reports whether another candidate has an earlier rank than target t.
func (x *Exchange) Fallback(t Target) bool {
	i := slices.IndexFunc(x.Candidates, func(c Choice) bool { return c.Target == t })
	return i >= 0 && slices.ContainsFunc(x.Candidates, func(c Choice) bool { return c.Rank < x.Candidates[i].Rank })
}

// Ended returns when the client had the complete answer; zero if it got none, or a
// flawed one.
func (x *Exchange) Ended() time.Time { return x.ended }

// current returns the request as it goes upstream, before a target's own edits.
func (x *Exchange) current() *transcript.Body {
	if x.Fitted != nil {
		return x.Fitted.Body
	}
	return x.Body
}

// Totals returns the target of the answer, its usage, and the usage of other attempts.
func (x *Exchange) Totals() (t Target, answer, beyond Usage) { return x.answered, x.usage, x.spent }

// Partial returns the usage that the latest incomplete answer reported. It is part of the usage of other attempts.
func (x *Exchange) Partial() Usage { return x.partial }

// Event returns an event of the exchange. Safe for concurrent use.
func (x *Exchange) Event(name EventName) Event {
	if name != EventFallbackUsed && !x.hasEvents.Load() { // that covers many requests
		x.hasEvents.Store(true)
	}
	return Event{Name: name, Time: time.Now(), Origin: x.origin()}
}

// Done returns the exchange's last event, without its time and what only the edge knows.
func (x *Exchange) Done() Event {
	ev := Event{Name: EventRequestDone, Origin: x.origin(), Attempt: len(x.Attempts), Target: x.answered, Cost: x.spent, Ending: Ending{
		Format: x.Body.Format().String(), Fallback: x.fallback, Recovery: strings.Join(x.actions, ", "), Usage: x.usage, Finish: x.finish,
		Others: x.hasEvents.Load(), Attempts: x.Attempts}}
	if len(x.Attempts) > 0 {
		ev.Prepared = x.Attempts[0].Started.Sub(x.Started)
	}
	return ev
}

func (x *Exchange) origin() Origin {
	return Origin{Request: x.ID, Key: x.Key, Session: x.Session, Model: x.Model, Mode: x.Mode, Streamed: x.Streaming}
}

// Did adds a recovery to the response header and the request's event, unless it is already there.
func (x *Exchange) Did(action string) {
	if action != "" && !slices.Contains(x.actions, action) {
		x.actions = append(x.actions, action)
	}
}

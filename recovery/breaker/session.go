package breaker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// BoardSessions is the board of sessions whose breaker is open. The field is the session, the value an OpenSession as JSON.
const BoardSessions = "sessions"

// BoardAccepted is the board of the clients' own credentials, by their labels,
// that an upstream has accepted.
const BoardAccepted = "accepted"

// OnOpen selects what the client of a session gets while its breaker is open.
type OnOpen string

// The ways to stop a session.
const (
	OnOpenExplain OnOpen = "explain" // a normal message that says what failed and what is needed
	OnOpenError   OnOpen = "error"   // an error that SDKs do not retry
	OnOpenSteer   OnOpen = "steer"   // the model is called with a note to stop and to ask the user
)

// Rings are the rings, values and meters of a store, which limits the duration of each call.
type Rings interface {
	Get(ctx context.Context, keys ...string) ([][]byte, error)
	Set(ctx context.Context, entries ...store.Entry) error
	Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error)
	Delete(ctx context.Context, keys ...string) error
	Charge(ctx context.Context, charges ...store.Charge) (store.Charged, error)
}

// Sessions are the breakers of conversations. Each conversation has a ring of its last failing turns. The breaker opens
// after a number of equal failures in a row, if the model got a firm note at an earlier one; then no model is called until
// the person writes something new. Turns that succeed are not stored: each failing turn records the last success before
// it. Waiting is not a failure: its duration counts. Safe for concurrent use.
type Sessions struct {
	cfg      atomic.Pointer[Config]
	rings    Rings
	board    Board
	observer recovery.Observer
	ask      func(recovery.Category) string
	posting  sync.Mutex // guards posting to the board, so that each change of a session is reported once

	// Stopped, if set before the first request, receives each session that a budget ends. It must not block.
	Stopped func(recovery.OpenSession)
}

var _ recovery.Stage = (*Sessions)(nil)

// NewSessions returns sessions without failures. ask returns what a person can do about a category of failures, empty if
// that is unknown.
func NewSessions(cfg Config, rings Rings, board Board, observer recovery.Observer, ask func(recovery.Category) string) *Sessions {
	s := &Sessions{rings: rings, board: board, observer: observer, ask: ask}
	s.cfg.Store(&cfg)
	return s
}

// Reconfigure applies new limits; what was counted stays.
func (s *Sessions) Reconfigure(cfg Config) { s.cfg.Store(&cfg) }

// slot is a failing turn in the ring.
type slot struct {
	Key     uint64 `json:"f"`
	User    uint64 `json:"u,omitempty"`
	Success uint64 `json:"s,omitempty"` // the last success before the turn, if its request showed one
	Streak  int    `json:"n,omitempty"` // number of equal failures in the request's own history
	Quiet   bool   `json:"q,omitempty"` // the model could get no note
	Reset   bool   `json:"r,omitempty"` // an operator closed the breaker here
}

// untilFailures is the minimum number of identical failures that stops a session whose person asked to repeat something
// until it ends in a certain way.
const untilFailures = 20

// limit returns how many identical failures stop the session. It is larger than the number of repetitions that the person
// asked for.
func (c *Config) limit(t *recovery.Turn) int {
	switch {
	case t.Allowed >= c.Failures:
		return t.Allowed + 1
	case t.Until:
		return max(c.Failures, untilFailures)
	}
	return c.Failures
}

// firm is the number of repetitions from which the note to the model is firm.
const firm = 3

// sharers is the number of indistinguishable sessions that a ring has room for.
const sharers = 4

func ringKey(session string) string { return "ring/" + session }

// Prepare records a failing or waiting turn, and opens or closes the session's breaker by it. While the breaker is open,
// it answers in the model's place. If the store fails, it does nothing.
func (s *Sessions) Prepare(ctx context.Context, x *recovery.Exchange) error {
	cfg := s.cfg.Load()
	if x.Session == "" || cfg.Failures == 0 || x.Mode == recovery.ModeOff || x.Side != nil && x.Turn.Key != 0 && x.Side() {
		return nil
	}
	if x.Turn.Key != 0 && !s.Accepted(x) {
		return nil
	}
	var stop *stopping
	var err error
	switch {
	case x.Turn.Waits:
		stop, err = s.waiting(ctx, x, cfg)
	case x.Turn.Failure != nil:
		if stop, err = s.failing(ctx, x, cfg); x.Turn.Until && stop == nil && err == nil {
			stop, err = s.waiting(ctx, x, cfg)
		}
	}
	if err != nil {
		return nil // the store reports its own failures
	}
	if stop == nil {
		s.close(x)
		return nil
	}
	f := stop.failure
	s.open(x, recovery.OpenSession{Session: x.Session, Tool: trajectory.Shorten(f.Tool, 128), Category: f.Category, Rule: f.Rule, Failures: stop.times,
		Since: time.Now().UTC()}, f, cfg.SessionTTL)
	if x.Mode == recovery.ModeObserve {
		return nil
	}
	switch text := s.explain(x, stop); {
	case cfg.OnOpen == OnOpenSteer, x.Mode == recovery.ModeAnnotate:
		x.Guidance = steer(stop)
	case cfg.OnOpen == OnOpenError, x.Body.ResponseFormat(), x.Body.N() > 1:
		x.Reply = &recovery.Reply{Action: "session_stopped", Text: text, Error: true}
	default:
		x.Reply = &recovery.Reply{Action: "session_stopped", Text: text}
	}
	return nil
}

// stopping is the reason why a session is stopped.
type stopping struct {
	failure *recovery.ToolFailure // the call
	times   int
	waited  time.Duration // 0 for failures
}

// quiet reports whether the exchange's model gets no notes from the gateway.
func quiet(x *recovery.Exchange) bool {
	return x.Mode == recovery.ModeObserve || x.Body.ToolChoice().Choice == transcript.ChoiceNone
}

// failing records a failing turn. The configured number of equal failures in a row stops the session, if the model got a
// firm note at an earlier one.
func (s *Sessions) failing(ctx context.Context, x *recovery.Exchange, cfg *Config) (*stopping, error) {
	now := slot{Key: x.Turn.Key, User: x.Turn.User, Success: x.Turn.Success, Streak: x.Turn.Streak, Quiet: quiet(x)}
	raw, _ := json.Marshal(now) // numbers
	// Indistinguishable sessions may make the same call at the same turn, but their results differ.
	turn := x.Turn.Slot + "/" + strconv.FormatUint(x.Turn.Key, 16)
	ring, err := s.rings.Push(ctx, ringKey(x.Session), turn, raw, min(sharers*max(cfg.limit(&x.Turn), firm+1), store.MaxRing), cfg.SessionTTL)
	if err != nil {
		return nil, err
	}
	same, warned := count(ring, now)
	x.Turn.Streak, x.Turn.Seen = max(x.Turn.Streak, same), max(x.Turn.Seen, same)
	x.Turn.Untold = same >= firm && !warned
	repeated(x, same)
	if same < cfg.limit(&x.Turn) || !warned && x.Mode != recovery.ModeObserve {
		return nil, nil
	}
	return &stopping{failure: x.Turn.Failure, times: same}, nil
}

// repeated adds the repetition to the exchange's loops, so that the model gets a note about it even if the client has cut
// the earlier failures from its history.
func repeated(x *recovery.Exchange, n int) {
	if n < 2 {
		return
	}
	for i := range x.Loops {
		if l := &x.Loops[i]; l.Kind == recovery.LoopSameError {
			l.Count = max(l.Count, n)
			return
		}
	}
	list := x.Body.Messages()
	from := len(list) - 1
	for from > 0 && list[from].Role != transcript.RoleAssistant {
		from--
	}
	x.Loops = append(x.Loops, recovery.Loop{Kind: recovery.LoopSameError, Count: n, Tools: []string{x.Turn.Failure.Tool}, From: from, To: len(list) - 1, New: true,
		Fingerprint: x.Turn.Key})
}

// wait is the stored state of a waiting session.
type wait struct {
	Key    uint64    `json:"k"`
	User   uint64    `json:"u,omitempty"`
	Slot   string    `json:"s"` // the latest turn
	Since  time.Time `json:"t"`
	Warned bool      `json:"w,omitempty"`
}

// Keys are the keys of what the store has of an exchange's session, but for its ring.
func Keys(x *recovery.Exchange) (keys []string) {
	if x.Session != "" {
		keys = append(keys, waitKey(x.Session))
	}
	if x.Budget.Duration > 0 {
		_, list := accounts(x)
		keys = append(keys, list...)
	}
	return keys
}

func waitKey(session string) string { return "wait/" + session }

// waiting records a turn that waits for the same thing as the one before, with the same result. The session is stopped
// after the configured time, not after a number of turns.
func (s *Sessions) waiting(ctx context.Context, x *recovery.Exchange, cfg *Config) (*stopping, error) {
	t := &x.Turn
	if t.Streak < 2 || cfg.WaitingHint == 0 {
		return nil, nil
	}
	values, err := x.From(s.rings).Get(ctx, waitKey(x.Session))
	if err != nil {
		return nil, err
	}
	now, w := time.Now(), wait{}
	if len(values) != 1 || json.Unmarshal(values[0], &w) != nil || w.Key != t.Key || w.User != t.User || w.Slot != t.Slot && w.Slot != t.Before ||
		w.Since.After(now) {
		w = wait{Key: t.Key, User: t.User, Since: now}
	}
	waited, warned := now.Sub(w.Since), w.Warned
	if waited >= cfg.WaitingHint {
		t.Waited = waited
		w.Warned = w.Warned || !quiet(x)
	}
	w.Slot = t.Slot
	raw, _ := json.Marshal(w) // numbers, a name and a time
	if err := s.rings.Set(ctx, store.Entry{Key: waitKey(x.Session), Value: raw, TTL: cfg.SessionTTL}); err != nil {
		return nil, err
	}
	x.Changed = append(x.Changed, waitKey(x.Session))
	if cfg.Waiting == 0 || waited < cfg.Waiting || !warned && x.Mode != recovery.ModeObserve || len(x.Results) == 0 {
		return nil, nil
	}
	call := x.Results[0]
	call.Rule = "waiting"
	return &stopping{failure: &call, times: t.Streak, waited: waited}, nil
}

// Accept records that an upstream has accepted the exchange's credential. Before that, no state of its sessions is stored,
// since anybody could fill the store with invented credentials.
func (s *Sessions) Accept(x *recovery.Exchange, now time.Time) {
	if x.Trusted {
		return
	}
	ttl := s.cfg.Load().SessionTTL
	field, known := s.board.Lookup(BoardAccepted, payer(x))
	if !known || field.Until.Sub(now) < ttl/2 {
		s.board.Post(BoardAccepted, store.Field{Name: payer(x), Value: []byte("1"), Until: now.Add(ttl)}, false)
	}
}

// Accepted reports whether an upstream has accepted the exchange's credential.
func (s *Sessions) Accepted(x *recovery.Exchange) bool {
	_, known := s.board.Lookup(BoardAccepted, payer(x))
	return known || x.Trusted
}

// payer names the credential of an exchange.
func payer(x *recovery.Exchange) string { return cmp.Or(x.Credential, "anonymous") }

// count returns the number of equal turns in a row at the end of a ring or of the newest request's history, whichever is
// larger, and whether the model got a firm note at one before the newest.
func count(ring [][]byte, now slot) (same int, warned bool) {
	turns := make([]slot, len(ring)) // the oldest first
	for i, raw := range ring {
		if json.Unmarshal(raw, &turns[i]) != nil {
			turns[i] = slot{} // equal to none
		}
	}
	// Indistinguishable sessions share a ring (a task that runs twice at once, with a model that counts its calls). Turns of
	// the other session in between do not cancel the note that this one got.
	for _, e := range turns {
		warned = !e.Reset && (warned || e.Key == now.Key && e.User == now.User && e.Streak >= firm && e.Streak < now.Streak && !e.Quiet)
	}
	row, reset := rowAtEnd(turns, now)
	if !reset {
		same = now.Streak
	}
	for i, e := range row {
		n := len(row) - i
		if !reset {
			n = max(n, e.Streak)
		}
		same = max(same, n)
		warned = warned || i > 0 && n >= firm && !e.Quiet
	}
	return same, warned
}

// rowAtEnd returns the turns at the end that are equal to the newest one, the newest first, and whether an operator closed
// the breaker before them.
func rowAtEnd(turns []slot, now slot) (row []slot, reset bool) {
	newest := now
	for _, e := range slices.Backward(turns) {
		if e.Reset || e.Key != now.Key || e.User != newest.User || newest.Success != e.Success && newest.Success != 0 {
			return row, e.Reset
		}
		newest, row = e, append(row, e)
	}
	return row, false
}

// open posts a stopped session on the board for some time and reports it as an event, once. It returns false if the session
// is on the board already; a used-up budget replaces another reason.
func (s *Sessions) open(x *recovery.Exchange, o recovery.OpenSession, f *recovery.ToolFailure, ttl time.Duration) bool {
	s.posting.Lock()
	defer s.posting.Unlock()
	if before, known := s.board.Lookup(BoardSessions, o.Session); known && (o.Budget == "" || stoppedSession(before).Budget != "") {
		return false
	}
	raw, _ := json.Marshal(o) // texts and numbers
	s.board.Post(BoardSessions, store.Field{Name: o.Session, Value: raw, Until: o.Since.Add(ttl)}, false)
	s.report(recovery.EventBreakerOpened, x, f)
	return true
}

// close removes a session that continues from the board, and reports that as an event.
func (s *Sessions) close(x *recovery.Exchange) {
	if f, known := s.board.Lookup(BoardSessions, x.Session); !known || stoppedSession(f).Budget != "" || x.Side != nil && x.Side() {
		return // neither a side request continues a stopped session, nor a message one without budget
	}
	s.posting.Lock()
	defer s.posting.Unlock()
	field, known := s.board.Lookup(BoardSessions, x.Session)
	if !known {
		return
	}
	s.board.Remove(BoardSessions, x.Session)
	o := stoppedSession(field) // an invalid entry is closed, too
	s.report(recovery.EventBreakerClosed, x, &recovery.ToolFailure{Tool: o.Tool, Category: o.Category, Rule: o.Rule, Failed: true})
}

func (s *Sessions) report(name recovery.EventName, x *recovery.Exchange, f *recovery.ToolFailure) {
	ev := x.Event(name)
	ev.Observed, ev.Failure = x.Mode == recovery.ModeObserve, f
	s.observer.Observe(ev)
}

// Reset closes a session's breaker for an operator: earlier failures and the budget's use no longer count. It returns
// errors of the store.
func (s *Sessions) Reset(ctx context.Context, session string) error {
	cfg := s.cfg.Load()
	if f, known := s.board.Lookup(BoardSessions, session); known {
		if err := s.resetBudget(ctx, stoppedSession(f)); err != nil {
			return err
		}
	}
	if err := s.rings.Delete(ctx, ringKey(session), waitKey(session)); err != nil {
		return err
	}
	raw, _ := json.Marshal(slot{Reset: true})
	if _, err := s.rings.Push(ctx, ringKey(session), "reset", raw, max(1, cfg.Failures), cfg.SessionTTL); err != nil {
		return err
	}
	s.board.Remove(BoardSessions, session)
	return nil
}

// Open returns the sessions whose breaker is open, the latest first.
func (s *Sessions) Open() (open []recovery.OpenSession) {
	s.board.Each(BoardSessions, func(f store.Field) bool {
		if o := stoppedSession(f); o.Session == f.Name {
			open = append(open, o)
		}
		return true
	})
	slices.SortFunc(open, func(a, b recovery.OpenSession) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Session, b.Session))
	})
	return open
}

// explain returns the message that the user gets instead of another attempt.
func (s *Sessions) explain(x *recovery.Exchange, stop *stopping) string {
	var b strings.Builder
	f := stop.failure
	if stop.waited > 0 {
		fmt.Fprintf(&b, "I stopped here: I have waited for %d minutes, and %s still gives the same answer.\n\n", int(stop.waited.Minutes()), named(f.Tool))
	} else {
		fmt.Fprintf(&b, "I stopped here: %s failed %d times in a row with the same error, so trying once more would not help.\n\n", named(f.Tool), stop.times)
	}
	if f.Line != "" {
		fmt.Fprintf(&b, "What failed:\n\n    %s\n\n", trajectory.OneLine(f.Line, 300))
	}
	if tried := attempts(x, stop); len(tried) > 0 {
		b.WriteString("What was tried last:\n\n")
		for _, t := range tried {
			fmt.Fprintf(&b, "- %s\n", t)
		}
		b.WriteByte('\n')
	}
	need := "look into this error, or tell me another way."
	if stop.waited > 0 {
		need = "look whether what I wait for still runs, or tell me to go on waiting."
	}
	b.WriteString("What I need from you: " + cmp.Or(s.ask(f.Category), need) + "\n\nSend a message, and I will go on from here.")
	return b.String()
}

// steer returns the note for a model that is called although the breaker is open.
func steer(stop *stopping) string {
	what := fmt.Sprintf("%s failed %d times in a row with the same error. Do not call it again in this turn.", named(stop.failure.Tool), stop.times)
	if stop.waited > 0 {
		what = fmt.Sprintf("You have waited for %d minutes, and %s still gives the same answer. Stop waiting in this turn.", int(stop.waited.Minutes()),
			named(stop.failure.Tool))
	}
	return "[gateway note, not from the user] " + what + " Tell the user what failed, what you tried, and what you need from them."
}

// attempts returns at most three calls of the last turn, shortened.
func attempts(x *recovery.Exchange, stop *stopping) (out []string) {
	for _, r := range x.Results {
		if !r.Failed && stop.waited == 0 || len(out) == 3 {
			continue
		}
		out = append(out, strings.TrimSpace(named(r.Tool)+" "+trajectory.OneLine(r.Arguments, 200)))
	}
	return out
}

func named(tool string) string {
	if tool == "" {
		return "the command"
	}
	return "`" + trajectory.OneLine(tool, 128) + "`"
}

package breaker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardSessions is the board of sessions whose breaker is open: field is the
// session, value what it failed on.
const BoardSessions = "sessions"

// BoardAccepted is the board of the clients' own credentials, by their labels,
// that an upstream has accepted.
const BoardAccepted = "accepted"

// OnOpen says what a client gets of a session whose breaker is open.
type OnOpen string

// The ways to stop a session.
const (
	OnOpenExplain OnOpen = "explain" // a normal message that says what failed and what is needed
	OnOpenError   OnOpen = "error"   // an error that SDKs do not repeat
	OnOpenSteer   OnOpen = "steer"   // the model is called, and told to stop and to ask the user
)

// Rings are the rings of a store, which bounds how long it takes.
type Rings interface {
	Push(ctx context.Context, key, slot string, value []byte, size int, ttl time.Duration) ([][]byte, error)
	Delete(ctx context.Context, keys ...string) error
}

// Listed is a Board whose fields can be listed.
type Listed interface {
	Board
	Each(board string, fn func(store.Field) bool)
}

// Sessions are the breakers of conversations. Each has a ring of its last
// failing turns; when all of it is the same failure the breaker opens, and no
// model is called until the person writes something new. Turns that succeed
// cost nothing: what came between two failures is part of what the later one
// notes. Safe for concurrent use.
type Sessions struct {
	cfg      atomic.Pointer[Config]
	rings    Rings
	board    Listed
	observer recovery.Observer
	ask      func(recovery.Category) string
}

var _ recovery.Stage = (*Sessions)(nil)

// NewSessions returns sessions without failures. ask says what a person can do
// about a category of failures.
func NewSessions(cfg Config, rings Rings, board Listed, observer recovery.Observer, ask func(recovery.Category) string) *Sessions {
	s := &Sessions{rings: rings, board: board, observer: observer, ask: ask}
	s.cfg.Store(&cfg)
	return s
}

// Reconfigure applies new limits; what was counted stays.
func (s *Sessions) Reconfigure(cfg Config) { s.cfg.Store(&cfg) }

// slot is a failing turn in the ring.
type slot struct {
	Failure uint64 `json:"f"`
	User    uint64 `json:"u,omitempty"`
	Success uint64 `json:"s,omitempty"` // the last success before it, as far as its request showed one
	Streak  int    `json:"n,omitempty"` // as its request's own history shows it
	Reset   bool   `json:"r,omitempty"` // an operator closed the breaker here
}

func ringKey(session string) string { return "ring/" + session }

// Prepare notes a failing turn and stops the session where its breaker is open.
// Without a store that answers it does nothing.
func (s *Sessions) Prepare(ctx context.Context, x *recovery.Exchange) error {
	cfg := s.cfg.Load()
	if x.Session == "" || cfg.Failures == 0 || x.Mode == recovery.ModeOff || x.Side != nil && x.Turn.Failure != nil && x.Side() {
		return nil
	}
	failure := x.Turn.Failure
	if failure == nil {
		s.close(x)
		return nil
	}
	if !s.accepted(x) {
		return nil
	}
	now := slot{Failure: failure.Fingerprint, User: x.Turn.User, Success: x.Turn.Success, Streak: x.Turn.Streak}
	raw, err := json.Marshal(now)
	if err != nil {
		return nil
	}
	ring, err := s.rings.Push(ctx, ringKey(x.Session), x.Turn.Slot, raw, cfg.Failures, cfg.SessionTTL)
	if err != nil {
		return nil // the store tells of its own trouble
	}
	same, seen := count(ring, now)
	x.Turn.Streak, x.Turn.Seen = max(x.Turn.Streak, same), max(x.Turn.Seen, seen)
	if same < cfg.Failures {
		s.close(x)
		return nil
	}
	s.open(x, failure, same)
	if x.Mode == recovery.ModeObserve {
		return nil
	}
	switch text := s.explain(x, failure, same); {
	case cfg.OnOpen == OnOpenSteer, x.Mode == recovery.ModeAnnotate:
		x.Guidance = steer(failure, same)
	case cfg.OnOpen == OnOpenError, x.Body.ResponseFormat(), x.Body.N() > 1:
		x.Reply = &recovery.Reply{Action: "session_stopped", Text: text, Error: true}
	default:
		x.Reply = &recovery.Reply{Action: "session_stopped", Text: text}
	}
	return nil
}

// Accept notes that an upstream has now accepted the exchange's credential.
// Nothing of a session is kept before: anybody could fill the store.
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

func (s *Sessions) accepted(x *recovery.Exchange) bool {
	_, known := s.board.Lookup(BoardAccepted, payer(x))
	return known || x.Trusted
}

// payer names the credential of an exchange.
func payer(x *recovery.Exchange) string { return cmp.Or(x.Credential, "anonymous") }

// count returns how many turns at the end of a ring are the same failure with
// nothing else between them, as the ring or the newest request shows it, and
// how many of the ring are that failure at all.
func count(ring [][]byte, now slot) (same, seen int) {
	same, broken, reset := 0, false, false
	newest := now
	for _, raw := range slices.Backward(ring) {
		var e slot
		if json.Unmarshal(raw, &e) != nil {
			broken = true
			continue // not ours
		}
		if e.Reset {
			reset, broken = true, true
		}
		if e.Failure != now.Failure || e.Reset {
			broken = true
			continue
		}
		seen++
		if broken || e.User != newest.User || newest.Success != e.Success && newest.Success != 0 {
			broken = true
			continue
		}
		newest = e
		same++
	}
	if !reset {
		same = max(same, now.Streak)
	}
	return same, seen
}

// open posts the session for everybody to see, once.
func (s *Sessions) open(x *recovery.Exchange, f *recovery.ToolFailure, n int) {
	if _, known := s.board.Lookup(BoardSessions, x.Session); known {
		return
	}
	now := time.Now()
	raw, err := json.Marshal(recovery.OpenSession{Session: x.Session, Tool: clipped(f.Tool, 128), Category: f.Category, Rule: f.Rule, Failures: n, Since: now.UTC()})
	if err != nil {
		return
	}
	s.board.Post(BoardSessions, store.Field{Name: x.Session, Value: raw, Until: now.Add(s.cfg.Load().SessionTTL)}, false)
	s.tell(recovery.EventBreakerOpened, x, f)
}

// close takes a session that goes on off the board.
func (s *Sessions) close(x *recovery.Exchange) {
	field, known := s.board.Lookup(BoardSessions, x.Session)
	if !known || x.Side != nil && x.Side() {
		return // a title for a stopped session does not set it going
	}
	s.board.Remove(BoardSessions, x.Session)
	var o recovery.OpenSession
	_ = json.Unmarshal(field.Value, &o) // what is not ours is closed, too
	s.tell(recovery.EventBreakerClosed, x, &recovery.ToolFailure{Tool: o.Tool, Category: o.Category, Rule: o.Rule, Failed: true})
}

func (s *Sessions) tell(name recovery.EventName, x *recovery.Exchange, f *recovery.ToolFailure) {
	s.observer.Observe(recovery.Event{Name: name, Time: time.Now(), Request: x.ID, Session: x.Session, Model: x.Model,
		Mode: x.Mode, Observed: x.Mode == recovery.ModeObserve, Failure: f})
}

// Reset closes a session's breaker by hand: what it counted so far does not
// count any more. The error is the store's.
func (s *Sessions) Reset(ctx context.Context, session string) error {
	cfg := s.cfg.Load()
	if err := s.rings.Delete(ctx, ringKey(session)); err != nil {
		return fmt.Errorf("resetting session: %w", err)
	}
	raw, err := json.Marshal(slot{Reset: true})
	if err != nil {
		return fmt.Errorf("resetting session: %w", err)
	}
	if _, err := s.rings.Push(ctx, ringKey(session), "reset", raw, max(1, cfg.Failures), cfg.SessionTTL); err != nil {
		return fmt.Errorf("resetting session: %w", err)
	}
	s.board.Remove(BoardSessions, session)
	return nil
}

// Open lists the sessions whose breaker is open, the latest first.
func (s *Sessions) Open() (open []recovery.OpenSession) {
	s.board.Each(BoardSessions, func(f store.Field) bool {
		var o recovery.OpenSession
		if json.Unmarshal(f.Value, &o) == nil && o.Session == f.Name {
			open = append(open, o)
		}
		return true
	})
	slices.SortFunc(open, func(a, b recovery.OpenSession) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Session, b.Session))
	})
	return open
}

// explain is what the user reads in place of a further attempt.
func (s *Sessions) explain(x *recovery.Exchange, f *recovery.ToolFailure, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "I stopped here: %s failed %d times in a row with the same error, so trying once more would not help.\n\n", named(f.Tool), n)
	if f.Line != "" {
		fmt.Fprintf(&b, "What failed:\n\n    %s\n\n", clipped(oneLine(f.Line), 300))
	}
	if tried := attempts(x); len(tried) > 0 {
		b.WriteString("What was tried last:\n\n")
		for _, t := range tried {
			fmt.Fprintf(&b, "- %s\n", t)
		}
		b.WriteByte('\n')
	}
	b.WriteString("What I need from you: " + cmp.Or(s.ask(f.Category), "look into this error, or tell me another way.") + "\n\nSend a message, and I will go on from here.")
	return b.String()
}

// steer is the note for a model that is called although the breaker is open.
func steer(f *recovery.ToolFailure, n int) string {
	return fmt.Sprintf("[gateway note, not from the user] %s failed %d times in a row with the same error. Do not call it again in this turn. "+
		"Tell the user what failed, what you tried, and what you need from them.", named(f.Tool), n)
}

// attempts are the calls of the failing turn, shortened.
func attempts(x *recovery.Exchange) (out []string) {
	for _, r := range x.Results {
		if !r.Failed || len(out) == 3 {
			continue
		}
		out = append(out, strings.TrimSpace(named(r.Tool)+" "+clipped(oneLine(r.Arguments), 200)))
	}
	return out
}

func named(tool string) string {
	if tool == "" {
		return "the command"
	}
	return "`" + clipped(oneLine(tool), 128) + "`"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func clipped(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

package plan

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardApprovals is the board of plans that wait for approval or were decided recently.
const BoardApprovals = "approvals"

// The states of an approval, as causes of its events.
const (
	Waiting  = "waiting"
	Approved = "approved"
	Refused  = "refused"
	Expired  = "expired"
)

// maxWaiting limits the number of listed approvals. When it is reached, plans are only proposed.
const maxWaiting = 256

// requestApproval lists a plan for approval and returns the approval's id, or "" if the list is full or the plan is too
// large.
func (s *Planner) requestApproval(ev recovery.Event, p *recovery.Plan, d time.Duration) (id string) {
	if len(s.Approvals()) >= maxWaiting {
		return ""
	}
	now := time.Now()
	a := recovery.Approval{ID: strings.ToLower(rand.Text()[:12]), State: Waiting, Session: ev.Session, Key: ev.Key, Model: ev.Model,
		Made: now.UTC(), Until: now.Add(d).UTC(), Plan: p}
	if !s.post(a) {
		return ""
	}
	ev.Name, ev.Until = recovery.EventApproval, a.Until
	s.report(ev, p, Waiting)
	if s.parts.Waiting != nil {
		s.parts.Waiting(a)
	}
	return a.ID
}

func (s *Planner) post(a recovery.Approval) bool {
	raw, _ := json.Marshal(a) // texts and numbers
	if len(raw) > store.MaxField {
		return false
	}
	s.parts.Board.Post(BoardApprovals, store.Field{Name: a.ID, Value: raw, Until: a.Until}, false)
	return true
}

// approval returns the approval with the id unless it has expired.
func (s *Planner) approval(id string) (a recovery.Approval, ok bool) {
	f, ok := s.parts.Board.Lookup(BoardApprovals, id)
	if ok {
		a, ok = readApproval(f)
	}
	return a, ok
}

// readApproval decodes a field of the board; ok is false if it is not an approval.
func readApproval(f store.Field) (a recovery.Approval, ok bool) {
	ok = json.Unmarshal(f.Value, &a) == nil && a.ID == f.Name && a.Plan != nil
	return a, ok
}

// Approvals lists approvals that wait or were decided and have not expired, latest first.
func (s *Planner) Approvals() (list []recovery.Approval) {
	s.parts.Board.Each(BoardApprovals, func(f store.Field) bool {
		if a, ok := readApproval(f); ok {
			list = append(list, a)
		}
		return true
	})
	slices.SortFunc(list, func(a, b recovery.Approval) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Decide approves or refuses a plan. It returns [recovery.ErrNoApproval], [recovery.ErrDecided], or the store's
// error if it is unknown which of several decisions was the first; the first one counts on all replicas.
// Replicas without the store decide separately.
func (s *Planner) Decide(id string, approve bool) error {
	a, ok := s.approval(id)
	if !ok {
		return recovery.ErrNoApproval
	}
	if a.State != Waiting {
		return recovery.ErrDecided
	}
	mine := []byte(rand.Text())
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	ring, err := s.parts.Decisions.Push(ctx, "approval/"+id, string(mine), mine, store.MaxRing, time.Until(a.Until))
	if err != nil {
		return fmt.Errorf("deciding: %w", err)
	}
	if len(ring) == 0 || !bytes.Equal(ring[0], mine) {
		return recovery.ErrDecided
	}
	if a.State = Refused; approve {
		a.State = Approved
	}
	s.post(a)
	s.report(recovery.Event{Name: recovery.EventApproval, Time: time.Now(), Origin: recovery.Origin{Session: a.Session, Key: a.Key, Model: a.Model}}, a.Plan, a.State)
	return nil
}

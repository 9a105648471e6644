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

// BoardApprovals is the board of plans that wait for a person, or were decided lately.
const BoardApprovals = "approvals"

// What may become of an approval, as causes of its events.
const (
	Waiting  = "waiting"
	Approved = "approved"
	Refused  = "refused"
	Expired  = "expired"
)

// maxWaiting bounds how many plans are listed. Beyond, plans are only proposed.
const maxWaiting = 256

// wait lists a plan for approval; empty where there is no room.
func (s *Planner) wait(ev recovery.Event, p *recovery.Plan, d time.Duration) (id string) {
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
	raw, err := json.Marshal(a)
	if err != nil || len(raw) > store.MaxField {
		return false
	}
	s.parts.Board.Post(BoardApprovals, store.Field{Name: a.ID, Value: raw, Until: a.Until}, false)
	return true
}

// approval is the one of that id, if it has not expired.
func (s *Planner) approval(id string) (a recovery.Approval, ok bool) {
	f, ok := s.parts.Board.Lookup(BoardApprovals, id)
	if ok {
		a, ok = readApproval(f)
	}
	return a, ok
}

// readApproval reads what is on the board; false for what is not ours.
func readApproval(f store.Field) (a recovery.Approval, ok bool) {
	ok = json.Unmarshal(f.Value, &a) == nil && a.ID == f.Name && a.Plan != nil
	return a, ok
}

// Approvals lists what waits for approval or was decided and has not expired, the
// latest first.
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

// Decide says whether a plan may be carried out. The errors are [recovery.ErrNoApproval]
// and [recovery.ErrDecided], or that the store did not say which decision was the first:
// that one counts, whichever replicas were told. Replicas that have lost the store decide
// each for itself.
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
	s.report(recovery.Event{Name: recovery.EventApproval, Time: time.Now(), Session: a.Session, Key: a.Key, Model: a.Model}, a.Plan, a.State)
	return nil
}

package stream

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Deliverable is an answer as whoever delivers it sees it.
type Deliverable interface {
	// ReportRepairs reports what was mended so far, once; Deliver does so too. It comes
	// first where the response's headers depend on it.
	ReportRepairs()
	Deliver(context.Context) *Broken
	Discard()
	// Drain reads an answer that nobody gets to its end.
	Drain()
	Usage() (recovery.Usage, time.Duration)
	// Finish is why the model ended the last choice, as far as it was read.
	Finish() recovery.Finish
	// AnswerID is the id of the answer, where the server may have kept it under that.
	AnswerID() string
	// ItemIDs are the ids of a response's items, of those that were read so far, where Options ask for them.
	ItemIDs() []string
}

var (
	_ Deliverable = (*Answer)(nil)
	_ Deliverable = (*Whole)(nil)
	_ Deliverable = (*Unread)(nil)
	_ Deliverable = (*Composed)(nil)
)

// unread is a Deliverable that nobody has read, or that needs no reading.
type unread struct{}

func (unread) ReportRepairs()          {}
func (unread) Finish() recovery.Finish { return recovery.FinishNone }
func (unread) AnswerID() string        { return "" }
func (unread) ItemIDs() []string       { return nil }

// Finish implements Deliverable.
func (a *Answer) Finish() recovery.Finish { return a.finish }

// AnswerID implements Deliverable.
func (a *Answer) AnswerID() string { return textOf([]byte(a.known.ID.ID)) }

// ItemIDs implements Deliverable.
func (a *Answer) ItemIDs() []string { return a.known.items }

// Finish implements Deliverable.
func (w *Whole) Finish() recovery.Finish { return w.finish }

// AnswerID implements Deliverable.
func (w *Whole) AnswerID() string { return textOf([]byte(w.id)) }

// ItemIDs implements Deliverable.
func (w *Whole) ItemIDs() []string { return w.items }

// Drain implements Deliverable: it was read already.
func (w *Whole) Drain() { w.Discard() }

// ReportRepairs reports what was mended so far, once.
func (a *Answer) ReportRepairs() {
	if a.h == nil || len(a.h.repairs) == 0 || a.o.Repaired == nil {
		return
	}
	list := a.h.repairs
	a.h.repairs = nil
	a.o.Repaired(list)
}

package stream

import (
	"context"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Deliverable is an answer that is ready for delivery.
type Deliverable interface {
	// ReportRepairs reports the repairs so far, once; Deliver does so too. Callers use it first if the
	// response's headers depend on it.
	ReportRepairs()
	Deliver(context.Context) *Broken
	Discard()
	// Drain reads an unused answer to its end.
	Drain()
	Usage() (recovery.Usage, time.Duration)
	// Finish returns why the model ended the last choice, as far as it was read.
	Finish() recovery.Finish
	// AnswerID returns the answer's id, under which the server may have stored it.
	AnswerID() string
	// ItemIDs returns the ids of a response's items read so far, if Options.ItemIDs is set.
	ItemIDs() []string
}

var (
	_ Deliverable = (*Answer)(nil)
	_ Deliverable = (*Whole)(nil)
	_ Deliverable = (*Unread)(nil)
	_ Deliverable = (*Composed)(nil)
)

// unread provides the methods of a Deliverable that was not parsed.
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

// Drain implements Deliverable: the answer was already read.
func (w *Whole) Drain() { w.Discard() }

// ReportRepairs implements Deliverable.
func (a *Answer) ReportRepairs() {
	if a.h != nil {
		a.o.report(&a.h.repairs)
	}
}

// ReportRepairs implements Deliverable.
func (w *Whole) ReportRepairs() { w.o.report(&w.repairs) }

// ReportRepairs implements Deliverable.
func (n *Composed) ReportRepairs() { n.o.report(&n.tell) }

// report reports repairs, once.
func (o *Options) report(repairs *[]recovery.Repair) {
	if list := *repairs; len(list) > 0 && o.Repaired != nil {
		*repairs = nil
		o.Repaired(list)
	}
}

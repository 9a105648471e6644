package store

import (
	"container/list"
	"context"
	"time"
)

// The bounds of a journal. Beyond them the oldest changes are forgotten,
// changes of boards last.
const (
	maxChanges      = 8192
	maxJournalBytes = 32 << 20
)

// changeID tells which changes replace each other.
type changeID struct {
	kind      changeKind
	name, sub string
}

// affects reports whether the order of two changes matters.
func (id changeID) affects(other changeID) bool {
	if id.name != other.name {
		return false
	}
	return id == other || id.kind == deleted && other.kind.ofKey() || other.kind == deleted && id.kind.ofKey()
}

type changeKind uint8

const (
	changedField changeKind = iota
	changedValue
	changedMeter
	changedSlot
	deleted
	appended
)

// ofKey reports whether a deletion of the key makes the change void.
func (k changeKind) ofKey() bool { return k == changedValue || k == changedSlot }

// change is one write that the primary has not seen.
type change struct {
	id     changeID
	field  fieldChange
	entry  Entry // also a slot's and a log's
	charge Charge
	size   int  // of the ring or log
	last   bool // the slot is the newest of its ring, not one replaced in place
	ends   time.Time
}

// fieldChange is a Post or Remove.
type fieldChange struct {
	field Field
	max   bool
	gone  bool
}

// after joins two changes of one field into one that has the effect of both.
func (c fieldChange) after(old fieldChange) fieldChange {
	switch {
	case c.gone || !c.max:
		return c
	case old.gone:
		c.max = false // what the store has is to be removed, so nothing there may stay
		return c
	case old.field.Until.After(c.field.Until):
		return old
	}
	c.max = old.max
	return c
}

// apply carries the change out, unless its time has passed.
func (c *change) apply(ctx context.Context, s Store, now time.Time) error {
	left := c.ends.Sub(now)
	if c.id.kind != deleted && c.id.kind != changedField && left <= 0 {
		return nil
	}
	switch c.id.kind {
	case changedField:
		return c.field.apply(ctx, s, c.id.name, now)
	case changedValue:
		e := c.entry
		e.TTL = left
		return s.Set(ctx, e)
	case changedMeter:
		_, err := s.Charge(ctx, c.charge)
		return err
	case changedSlot:
		_, err := s.Push(ctx, c.id.name, c.id.sub, c.entry.Value, c.size, left)
		return err
	case deleted:
		return s.Delete(ctx, c.id.name)
	default:
		return s.Append(ctx, c.id.name, c.entry.Value, c.size)
	}
}

func (c fieldChange) apply(ctx context.Context, s Store, board string, now time.Time) error {
	switch {
	case c.gone:
		return s.Remove(ctx, board, c.field.Name)
	case c.field.Alive(now) || !c.max:
		return s.Post(ctx, board, c.field, c.max)
	}
	return nil
}

func (c *change) bytes() int {
	return len(c.id.name) + len(c.id.sub) + len(c.entry.Value) + len(c.field.field.Value)
}

// journal keeps changes in order, each identity once.
type journal struct {
	boards, rest list.List // of *change
	byID         map[changeID]*list.Element
	bytes        int
	forgotten    int // changes, since forget was last read
}

func (j *journal) len() int { return j.boards.Len() + j.rest.Len() }

func (j *journal) listOf(k changeKind) *list.List {
	if k == changedField {
		return &j.boards
	}
	return &j.rest
}

// add records a change after those that are there already.
func (j *journal) add(c change) {
	if c.id.kind == deleted {
		j.forgetKey(c.id.name)
	}
	e := j.find(c.id)
	if e != nil && c.last {
		j.remove(e)
		e = nil
	}
	if e != nil {
		old := e.Value.(*change)
		j.bytes -= old.bytes()
		switch c.id.kind {
		case changedField:
			c.field = c.field.after(old.field)
		case changedMeter:
			c.charge.Amount, c.ends = c.charge.Amount+old.charge.Amount, old.ends
		}
		*old = c // keeps its place: a slot that is replaced keeps it too
		j.bytes += old.bytes()
	} else {
		j.insert(c, false)
	}
	for j.len() > maxChanges || j.bytes > maxJournalBytes {
		oldest := j.rest.Front()
		if oldest == nil {
			oldest = j.boards.Front()
		}
		j.remove(oldest)
		j.forgotten++
	}
}

// restore puts a change back that take had taken; later ones prevail.
func (j *journal) restore(c change) {
	e := j.find(c.id)
	if e == nil {
		j.insert(c, true)
		return
	}
	later := e.Value.(*change)
	j.bytes -= later.bytes()
	switch c.id.kind {
	case changedField:
		later.field = later.field.after(c.field)
	case changedMeter:
		later.charge.Amount += c.charge.Amount
	}
	j.bytes += later.bytes()
}

func (j *journal) insert(c change, first bool) {
	if j.byID == nil {
		j.byID = map[changeID]*list.Element{}
	}
	to := j.listOf(c.id.kind)
	var e *list.Element
	if first {
		e = to.PushFront(&c)
	} else {
		e = to.PushBack(&c)
	}
	j.bytes += c.bytes()
	if c.id.kind != appended {
		j.byID[c.id] = e
	}
}

// find never finds an entry of a log: two are two.
func (j *journal) find(id changeID) *list.Element { return j.byID[id] }

// take removes and returns the oldest change, those of boards first.
func (j *journal) take() (change, bool) {
	for _, l := range [...]*list.List{&j.boards, &j.rest} {
		if e := l.Front(); e != nil {
			j.remove(e)
			return *e.Value.(*change), true
		}
	}
	return change{}, false
}

func (j *journal) remove(e *list.Element) {
	c := e.Value.(*change)
	j.bytes -= c.bytes()
	if c.id.kind != appended {
		delete(j.byID, c.id)
	}
	j.listOf(c.id.kind).Remove(e)
}

// affects reports whether a change that waits is older than one of id.
func (j *journal) affects(id changeID) bool {
	if j.find(id) != nil {
		return true
	}
	switch id.kind {
	case changedValue, changedSlot:
		return j.find(changeID{deleted, id.name, ""}) != nil
	case deleted:
		for e := j.rest.Front(); e != nil; e = e.Next() {
			if id.affects(e.Value.(*change).id) {
				return true
			}
		}
	}
	return false
}

// forgetKey drops what a Delete of the key makes void.
func (j *journal) forgetKey(key string) {
	for e := j.rest.Front(); e != nil; {
		next := e.Next()
		if id := e.Value.(*change).id; id.name == key && (id.kind.ofKey() || id.kind == deleted) {
			j.remove(e)
		}
		e = next
	}
}

package store

import (
	"container/list"
	"context"
	"time"
)

// The limits of a journal. Beyond them, changes are dropped: first entries of logs, then slots, meters and values; of each
// kind the oldest first.
const (
	maxChanges      = 8192
	maxJournalBytes = 32 << 20
	// One round trip copies at most maxBatch values and maxBatchBytes, or one larger value: it must end within the
	// time-out.
	maxBatch      = 64
	maxBatchBytes = 512 << 10
)

// journal holds the changes that the primary has not seen: of values only the key, as the value is read when it is
// copied; of meters, rings and logs what is added.
type journal struct {
	lists   [kinds]list.List // of *change, by kind, the oldest first
	byID    map[changeID]*list.Element
	bytes   int
	count   uint64 // number of added changes, which numbers them
	dropped int    // number of changes that were dropped
}

// changeID identifies changes that replace or join each other; entries of a log never do. sub is the meter or slot.
type changeID struct {
	kind      changeKind
	name, sub string
}

type changeKind uint8

// The kinds of changes, in the order in which they are copied.
const (
	changedValue changeKind = iota
	changedMeter
	changedSlot
	appended
	kinds
)

// change is one change that the primary has not seen.
type change struct {
	id      changeID
	current func() (Entry, bool) // the value as it is now; false if there is none
	erase   bool                 // the key was deleted, with its ring
	once    bool                 // the value does not replace an existing one
	value   []byte               // of a slot or an entry of a log
	charge  Charge
	size    int       // of the ring or log, in slots or entries
	last    bool      // the slot is the newest of its ring, not one replaced in place
	ends    time.Time // when it need not be copied any more; not used for values
	first   uint64    // number of the first change that joined this one
	version uint64    // number of the latest
}

// apply applies the first changes of a batch of nextBatch to a store and skips expired ones. n is how many it handled: as
// many as fit into one round trip, at least one.
func apply(ctx context.Context, s Store, batch []change, now time.Time) (n int, err error) {
	c := batch[0]
	left := c.ends.Sub(now)
	switch {
	case c.id.kind == changedValue:
		if c.erase {
			if err := s.Delete(ctx, c.id.name); err != nil {
				return 1, err
			}
		}
		var entries []Entry
		bytes := 0
		for _, c := range batch {
			if e, ok := c.current(); ok && CheckEntries(e) == nil {
				if bytes += len(e.Value); bytes > maxBatchBytes && len(entries) > 0 {
					break
				}
				e.Once = c.once
				entries = append(entries, e)
			}
			n++
		}
		if len(entries) > 0 {
			err = s.Set(ctx, entries...)
		}
		return n, err
	case left <= 0:
	case c.id.kind == changedMeter:
		_, err = s.Charge(ctx, c.charge)
	case c.id.kind == changedSlot:
		_, err = s.Push(ctx, c.id.name, c.id.sub, c.value, c.size, left)
	default:
		err = s.Append(ctx, c.id.name, c.value, c.size)
	}
	return 1, err
}

func (c *change) bytes() int { return len(c.id.name) + len(c.id.sub) + len(c.value) }

func (j *journal) len() (n int) {
	for k := range j.lists {
		n += j.lists[k].Len()
	}
	return n
}

// add adds a change to the end, or joins it with an earlier change of the same thing.
func (j *journal) add(c change) {
	if c.erase {
		j.dropSlots(c.id.name)
	}
	j.count++
	c.first, c.version = j.count, j.count
	e := j.byID[c.id]
	if e != nil && (c.last || e.Value.(*change).endedBefore(c)) {
		j.remove(e)
		e = nil
	}
	if e == nil {
		j.insert(&c)
	} else {
		old := e.Value.(*change)
		j.bytes -= old.bytes()
		c.first, c.erase, c.once = old.first, c.erase || old.erase, c.once && old.once
		if c.id.kind == changedMeter {
			sum := c.charge.Amount + old.charge.Amount
			c.charge.Amount, c.ends = max(min(sum, MaxAmount), -MaxAmount), old.ends
		}
		*old = c // in its old place, as a replaced slot keeps its place in the ring
		if c.id.kind == changedMeter {
			j.lists[changedMeter].MoveToBack(e)
		}
		j.bytes += old.bytes()
	}
	for j.len() > maxChanges || j.bytes > maxJournalBytes {
		k := kinds - 1
		for j.lists[k].Len() == 0 {
			k--
		}
		j.remove(j.lists[k].Front())
		j.dropped++
	}
}

// endedBefore reports whether a charge has expired by the time of a later charge of the same meter.
func (c *change) endedBefore(later change) bool {
	return c.id.kind == changedMeter && !c.ends.After(later.ends.Add(-later.charge.Window))
}

func (j *journal) insert(c *change) {
	if j.byID == nil {
		j.byID = map[changeID]*list.Element{}
	}
	e := j.lists[c.id.kind].PushBack(c)
	j.bytes += c.bytes()
	if c.id.kind != appended {
		j.byID[c.id] = e
	}
}

func (j *journal) remove(e *list.Element) {
	c := e.Value.(*change)
	j.bytes -= c.bytes()
	if c.id.kind != appended {
		delete(j.byID, c.id)
	}
	j.lists[c.id.kind].Remove(e)
}

// nextBatch returns the oldest changes that one round trip can copy: several values, a single deletion, or one change of
// another kind. They stay in the journal until done.
func (j *journal) nextBatch() (batch []change) {
	for e := j.lists[changedValue].Front(); e != nil && len(batch) < maxBatch; e = e.Next() {
		c := e.Value.(*change)
		if c.erase && len(batch) > 0 {
			break
		}
		if batch = append(batch, *c); c.erase {
			break
		}
	}
	for k := changedMeter; len(batch) == 0 && k < kinds; k++ {
		if e := j.lists[k].Front(); e != nil {
			batch = append(batch, *e.Value.(*change))
		}
	}
	return batch
}

// done removes a copied change. What was added to it meanwhile stays.
func (j *journal) done(c change) {
	e := j.byID[c.id]
	if c.id.kind == appended {
		e = j.lists[appended].Front()
	}
	if e == nil {
		return
	}
	switch now := e.Value.(*change); {
	case now.version == c.version:
		j.remove(e)
	case c.id.kind == changedMeter && now.first == c.first:
		now.charge.Amount -= c.charge.Amount
	}
}

// has reports whether the journal has a change of this ring or log.
func (j *journal) has(kind changeKind, name string) bool {
	for e := j.lists[kind].Front(); e != nil; e = e.Next() {
		if e.Value.(*change).id.name == name {
			return true
		}
	}
	return false
}

// dropSlots drops the slots of a ring that is deleted.
func (j *journal) dropSlots(key string) {
	for e := j.lists[changedSlot].Front(); e != nil; {
		next := e.Next()
		if e.Value.(*change).id.name == key {
			j.remove(e)
		}
		e = next
	}
}

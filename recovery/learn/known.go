package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// corpus holds the observations that this replica knows: those in the log, its own, and those that it read from
// the log before the store became unavailable.
type corpus struct {
	list    []Observation // in the order in which they became known
	ids     map[string]bool
	reset   string // the last reset that was applied
	refused int    // invalid entries in the last reading
}

// resetEntry is an entry of the log that invalidates all entries before it.
type resetEntry struct {
	Reset string `json:"reset"`
}

func (k *corpus) add(o Observation) bool {
	if k.ids[o.ID] {
		return false
	}
	if k.ids == nil {
		k.ids = map[string]bool{}
	}
	k.ids[o.ID] = true
	k.list = append(k.list, o)
	if len(k.list) > logSize {
		delete(k.ids, k.list[0].ID)
		k.list = slices.Delete(k.list, 0, 1)
	}
	return true
}

// read adds the entries of the log. It reports whether anything changed.
func (k *corpus) read(entries [][]byte, r *rules, now time.Time) (changed bool) {
	for i := len(entries) - 1; i >= 0; i-- {
		var mark resetEntry
		if len(entries[i]) > maxObservation || !bytes.HasPrefix(entries[i], []byte(`{"reset":`)) || json.Unmarshal(entries[i], &mark) != nil || mark.Reset == "" {
			continue
		}
		if mark.Reset != k.reset {
			k.list, k.ids, k.reset, changed = nil, nil, mark.Reset, true
		}
		entries = entries[i+1:]
		break
	}
	k.refused = 0
	for _, raw := range entries {
		if o, err := r.read(raw, now); err != nil {
			k.refused++
		} else if k.add(o) {
			changed = true
		}
	}
	return changed
}

// read reads the log from the store.
func (o *Outcomes) read(ctx context.Context) {
	r := o.rules.Load()
	if r.mode == OutcomesOff {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	entries, err := o.parts.Store.Tail(ctx, logOutcomes, logSize)
	if err != nil {
		return
	}
	if o.known.read(entries, r, time.Now()) {
		o.changed = true
	}
}

// ErrOff is the error of operations that need learning while it is off.
var ErrOff = errors.New("learning is off (learn.outcomes)")

// exclusive runs a function for a caller with the log read and the observations counted before, and counted again if
// the function added some. It does not wait longer than ctx allows.
func (o *Outcomes) exclusive(ctx context.Context, do func() error) error {
	if o.rules.Load().mode == OutcomesOff {
		return ErrOff
	}
	if !o.acquire(ctx) {
		return ctx.Err()
	}
	defer o.release()
	o.read(ctx)
	o.foldChanged()
	defer o.foldChanged()
	return do()
}

// Export writes the observations as one JSON object per line.
func (o *Outcomes) Export(ctx context.Context, w io.Writer) error {
	var list []Observation
	if err := o.exclusive(ctx, func() error { list = slices.Clone(o.known.list); return nil }); err != nil {
		return err
	}
	for i := range list {
		if _, err := w.Write(append(list[i].line(), '\n')); err != nil {
			return fmt.Errorf("writing observations: %w", err)
		}
	}
	return nil
}

// Import adds the observations in r, one JSON object per line, and returns how many it added and refused. Known
// observations count as neither. Lines beyond the size of the log are refused. The caller must limit r.
func (o *Outcomes) Import(ctx context.Context, r io.Reader) (added, refused int, err error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return 0, 0, fmt.Errorf("reading observations: %w", err)
	}
	err = o.exclusive(ctx, func() error {
		check, lines := o.rules.Load(), 0
		for line := range bytes.Lines(raw) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			ob, err := check.read(line, time.Now())
			if lines++; err != nil || lines > logSize {
				refused++
				continue
			}
			if !o.known.add(ob) {
				continue
			}
			added, o.changed = added+1, true
			if err := o.parts.Store.Append(ctx, logOutcomes, ob.line(), logSize); err != nil {
				return fmt.Errorf("keeping observations: %w", err)
			}
		}
		return nil
	})
	return added, refused, err
}

// Reset removes all observations, on all replicas as soon as they read the log.
func (o *Outcomes) Reset(ctx context.Context) error {
	return o.exclusive(ctx, func() error {
		raw, _ := json.Marshal(resetEntry{strconv.FormatInt(time.Now().UnixNano(), 36)})
		if err := o.parts.Store.Append(ctx, logOutcomes, raw, logSize); err != nil {
			return fmt.Errorf("resetting what was learned: %w", err)
		}
		o.read(ctx)
		return nil
	})
}

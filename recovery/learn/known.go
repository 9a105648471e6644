package learn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// known is the observations that this replica knows: the log's, its own, and what the
// log had while a store that is away now could be read.
type known struct {
	list    []Observation // in the order in which they became known
	ids     map[string]bool
	own     []Observation // of this replica's last hour: what the store lost is appended again
	reset   string        // the last reset that was obeyed
	refused int           // entries of the last reading that are no observations
	last    []byte        // entry of the last reading: where nothing is new, nothing is done
	entries int
}

// reset is an entry of the log before which nothing counts.
type resetEntry struct {
	Reset string `json:"reset"`
}

func (k *known) add(o Observation) bool {
	if k.ids[o.ID] {
		return false
	}
	if k.ids == nil {
		k.ids = map[string]bool{}
	}
	k.ids[o.ID] = true
	k.list = append(k.list, o)
	if over := len(k.list) - logSize; over > 0 {
		for _, old := range k.list[:over] {
			delete(k.ids, old.ID)
		}
		k.list = append([]Observation(nil), k.list[over:]...)
	}
	return true
}

// read takes over what the log has. It reports whether anything changed.
func (k *known) read(entries [][]byte, r rules, now time.Time) (changed bool) {
	if n := len(entries); n == 0 || n == k.entries && bytes.Equal(entries[n-1], k.last) {
		return false
	}
	k.entries, k.last = len(entries), entries[len(entries)-1]
	for i := len(entries) - 1; i >= 0; i-- {
		var mark resetEntry
		if len(entries[i]) > maxObservation || !bytes.HasPrefix(entries[i], []byte(`{"reset":`)) || json.Unmarshal(entries[i], &mark) != nil || mark.Reset == "" {
			continue
		}
		if mark.Reset != k.reset {
			k.list, k.ids, k.own, k.reset, changed = nil, nil, nil, mark.Reset, true
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

// missing is the replica's own observations of the last hour that the log does not
// have: a store that was away has not seen them, or has lost them.
func (k *known) missing(entries [][]byte, now time.Time) (out []Observation) {
	k.own = slices.DeleteFunc(k.own, func(o Observation) bool { return now.Sub(time.Unix(o.Time, 0)) > time.Hour })
	if len(k.own) == 0 || len(entries) >= logSize {
		return nil
	}
	there := map[string]bool{}
	for _, raw := range entries {
		if len(raw) <= maxObservation {
			there[gjson.GetBytes(raw, "id").Str] = true
		}
	}
	for _, o := range k.own {
		if !there[o.ID] {
			out = append(out, o)
		}
	}
	return out
}

// read reads the log.
func (o *Outcomes) read(ctx context.Context) {
	cfg := o.cfg.Load()
	if cfg.mode == OutcomesOff {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	entries, err := o.parts.Corpus.Tail(ctx, logOutcomes, logSize)
	if err != nil {
		return
	}
	if o.known.read(entries, rules{cfg.priors, o.parts.Vocabulary}, time.Now()) {
		o.changed = true
	}
	for _, ob := range o.known.missing(entries, time.Now()) {
		_ = o.parts.Corpus.Append(ctx, logOutcomes, ob.line(), logSize) // else with the next reading
	}
}

// errOff is of what cannot be done while nothing is learned.
var errOff = errors.New("learning is off (learn.outcomes)")

// do has the goroutine do something, after it read the log.
func (o *Outcomes) do(ctx context.Context, what func(ctx context.Context) error) error {
	if o.cfg.Load().mode == OutcomesOff {
		return errOff
	}
	result := make(chan error, 1)
	t := task{do: func(own context.Context) {
		o.read(own)
		if o.changed {
			o.fold()
		}
		err := what(own)
		if o.changed {
			o.fold() // who waits for this goes on from it
		}
		result <- err
	}}
	select {
	case o.queue <- t:
	case <-ctx.Done():
		return ctx.Err()
	case <-o.done:
		return context.Canceled
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-o.done:
		return context.Canceled
	}
}

// Export writes the observations, one JSON object a line.
func (o *Outcomes) Export(ctx context.Context, w io.Writer) error {
	var list []Observation
	err := o.do(ctx, func(context.Context) error {
		list = append(list, o.known.list...)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range list {
		if _, err := w.Write(append(list[i].line(), '\n')); err != nil {
			return fmt.Errorf("writing observations: %w", err)
		}
	}
	return nil
}

// maxImport bounds what is imported at once, in lines.
const maxImport = logSize

// Import adds the observations that r has, one JSON object a line, and tells how many
// it took and how many it refused. What is known already is neither.
func (o *Outcomes) Import(ctx context.Context, r io.Reader) (added, refused int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxObservation)
	var lines [][]byte
	for in.Scan() && len(lines) < maxImport {
		if line := bytes.TrimSpace(in.Bytes()); len(line) > 0 {
			lines = append(lines, bytes.Clone(line))
		}
	}
	if err := in.Err(); err != nil {
		return 0, 0, fmt.Errorf("reading line %d: %w", len(lines)+1, err)
	}
	err = o.do(ctx, func(own context.Context) error {
		check := rules{o.cfg.Load().priors, o.parts.Vocabulary}
		for _, line := range lines {
			ob, err := check.read(line, time.Now())
			if err != nil {
				refused++
				continue
			}
			if !o.known.add(ob) {
				continue
			}
			added, o.changed = added+1, true
			if err := o.parts.Corpus.Append(own, logOutcomes, ob.line(), logSize); err != nil {
				return fmt.Errorf("keeping observations: %w", err)
			}
		}
		return nil
	})
	return added, refused, err
}

// Reset forgets all observations, in all replicas as soon as they read the log.
func (o *Outcomes) Reset(ctx context.Context) error {
	return o.do(ctx, func(own context.Context) error {
		raw, err := json.Marshal(resetEntry{strconv.FormatInt(time.Now().UnixNano(), 36)})
		if err == nil {
			err = o.parts.Corpus.Append(own, logOutcomes, raw, logSize)
		}
		if err != nil {
			return fmt.Errorf("resetting what was learned: %w", err)
		}
		o.read(own)
		return nil
	})
}

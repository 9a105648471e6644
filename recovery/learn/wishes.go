package learn

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardWishes is the board of what persons ruled out; a field is a client.
const BoardWishes = "wishes"

const (
	// wishTTL is how long it is remembered what a client's persons ruled out, since they
	// said it last.
	wishTTL = 30 * 24 * time.Hour
	// wishRenewed is after how much of that time it is written anew: a long session says
	// the same with each request.
	wishRenewed = 24 * time.Hour
)

// Wishes remember across sessions what the persons of a client ruled out: names of deeds,
// no text. Off they remember nothing new, and nothing counts. Safe for concurrent use.
type Wishes struct {
	board Board
	on    atomic.Bool
}

// NewWishes returns wishes that are kept on board.
func NewWishes(board Board, on bool) *Wishes {
	w := &Wishes{board: board}
	w.Reconfigure(on)
	return w
}

// Reconfigure sets whether anything is remembered.
func (w *Wishes) Reconfigure(on bool) { w.on.Store(on) }

// On reports whether anything is remembered.
func (w *Wishes) On() bool { return w.on.Load() }

// Of is what is known to be ruled out for a client.
func (w *Wishes) Of(client string) recovery.Deeds {
	if !w.On() || client == "" {
		return 0
	}
	f, _ := w.board.Lookup(BoardWishes, client)
	return deedsOf(f)
}

// Keep remembers what a person of a client said that is not to be done.
func (w *Wishes) Keep(client string, said recovery.Deeds) {
	if !w.On() || client == "" || said == 0 {
		return
	}
	f, _ := w.board.Lookup(BoardWishes, client)
	known := deedsOf(f)
	until := time.Now().Add(wishTTL)
	if known|said == known && until.Sub(f.Until) < wishRenewed {
		return
	}
	raw, err := json.Marshal(strings.Split((known | said).String(), ","))
	if err != nil {
		return // cannot be: names
	}
	w.board.Post(BoardWishes, store.Field{Name: client, Value: raw, Until: until}, false)
}

// List is all that is remembered, by client.
func (w *Wishes) List() (out []recovery.Wish) {
	w.board.Each(BoardWishes, func(f store.Field) bool {
		if deeds := deedsOf(f); deeds != 0 {
			out = append(out, recovery.Wish{Key: f.Name, RuledOut: strings.Split(deeds.String(), ","), Until: f.Until.UTC()})
		}
		return true
	})
	slices.SortFunc(out, func(x, y recovery.Wish) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// Clear forgets all of it.
func (w *Wishes) Clear() {
	for _, known := range w.List() {
		w.board.Remove(BoardWishes, known.Key)
	}
}

// deedsOf reads a field; what is not ours says nothing.
func deedsOf(f store.Field) recovery.Deeds {
	var names []string
	if json.Unmarshal(f.Value, &names) != nil {
		return 0
	}
	return recovery.DeedsOf(names...)
}

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

// BoardWishes is the board of what users forbid; a field is a client.
const BoardWishes = "wishes"

const (
	// wishTTL is how long a wish is remembered after a user said it last.
	wishTTL = 30 * 24 * time.Hour
	// wishRenewed is the minimum age of a stored wish before it is stored again, because a long session repeats it with
	// each request.
	wishRenewed = 24 * time.Hour
)

// Wishes remembers across sessions what the users of a client forbid: names of deeds, no text. While off it
// stores nothing and returns nothing. It is safe for concurrent use.
type Wishes struct {
	board Board
	on    atomic.Bool
}

// NewWishes returns wishes that are stored on board.
func NewWishes(board Board, on bool) *Wishes {
	w := &Wishes{board: board}
	w.Reconfigure(on)
	return w
}

// Reconfigure switches remembering on or off.
func (w *Wishes) Reconfigure(on bool) { w.on.Store(on) }

// On reports whether remembering is on.
func (w *Wishes) On() bool { return w.on.Load() }

// Of returns what the users of a client forbid.
func (w *Wishes) Of(client string) recovery.Deeds {
	if !w.On() || client == "" {
		return 0
	}
	f, _ := w.board.Lookup(BoardWishes, client)
	return deedsOf(f)
}

// Keep stores what a user of a client forbids.
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
	raw, _ := json.Marshal(strings.Split((known | said).String(), ",")) // names
	w.board.Post(BoardWishes, store.Field{Name: client, Value: raw, Until: until}, false)
}

// List returns all stored wishes, by client.
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

// Clear removes all wishes.
func (w *Wishes) Clear() {
	for _, known := range w.List() {
		w.board.Remove(BoardWishes, known.Key)
	}
}

// deedsOf decodes a field; it returns 0 for an invalid one.
func deedsOf(f store.Field) recovery.Deeds {
	var names []string
	if json.Unmarshal(f.Value, &names) != nil {
		return 0
	}
	return recovery.DeedsOf(names...)
}

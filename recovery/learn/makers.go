package learn

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/store"
)

// BoardMakers is the board that replicas share; a field is a session that moved to another account.
const BoardMakers = "makers"

// Makers remembers which accounts created the reasoning of sessions that moved. It is safe for concurrent use.
type Makers struct {
	board Board
	ttl   atomic.Int64
}

var _ recovery.Makers = (*Makers)(nil)

// NewMakers returns makers that are stored on board for ttl.
func NewMakers(board Board, ttl time.Duration) *Makers {
	m := &Makers{board: board}
	m.Reconfigure(ttl)
	return m
}

// Reconfigure sets the lifetime of what is stored later.
func (m *Makers) Reconfigure(ttl time.Duration) { m.ttl.Store(int64(ttl)) }

// Made implements recovery.Makers. It ignores an invalid field.
func (m *Makers) Made(session string) (made []recovery.Made) {
	f, ok := m.board.Lookup(BoardMakers, session)
	if !ok || json.Unmarshal(f.Value, &made) != nil || len(made) > 64 ||
		!slices.IsSortedFunc(made, func(a, b recovery.Made) int { return a.From - b.From }) || len(made) > 0 && made[0].From < 0 {
		return nil
	}
	return made
}

// Remember implements recovery.Makers.
func (m *Makers) Remember(session string, made []recovery.Made) {
	raw, _ := json.Marshal(made) // names and numbers
	m.board.Post(BoardMakers, store.Field{Name: session, Value: raw, Until: time.Now().Add(time.Duration(m.ttl.Load()))}, false)
}

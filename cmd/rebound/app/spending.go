package app

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rebound-llm/rebound/proxy/admin"
	"github.com/rebound-llm/rebound/store"
)

// boardSpent is the board of recovery costs. Its fields are an admin.SpentDay in JSON for each day
// and replica, kept until the end of the next day.
const boardSpent = "spent"

// maxSpent is the number of models, and of keys, with a sum of their own per day.
const maxSpent = 60

// spending sums up the costs of recovery at this replica today (UTC). It is safe for concurrent use.
type spending struct {
	mu      sync.Mutex
	day     admin.SpentDay
	changed bool
}

func today(now time.Time) string { return now.UTC().Format(time.DateOnly) }

// add adds the recovery cost of an event.
func (s *spending) add(model, key string, tokens int, money float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if day := today(time.Now()); s.day.Day != day {
		s.day = admin.SpentDay{Day: day, Models: map[string]admin.Spent{}, Keys: map[string]admin.Spent{}}
	}
	for i, sums := range [...]map[string]admin.Spent{s.day.Models, s.day.Keys} {
		name := [...]string{model, key}[i]
		if _, known := sums[name]; !known && len(sums) >= maxSpent {
			name = "other"
		}
		sums[name] = sums[name].Add(admin.Spent{Tokens: float64(tokens), Money: money})
	}
	s.changed = true
}

// post publishes this replica's sums, if they have changed.
func (s *spending) post(board *store.Mirror, replica string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.changed {
		return
	}
	s.changed = false
	if raw, err := json.Marshal(s.day); err == nil && len(raw) <= store.MaxField {
		day, _ := time.Parse(time.DateOnly, s.day.Day) // add formatted it
		board.Post(boardSpent, store.Field{Name: s.day.Day + " " + replica, Value: raw, Until: day.Add(48 * time.Hour)}, false)
	}
}

// spent returns the sums of all replicas for each day, the latest first.
func (a *App) spent() []admin.SpentDay {
	a.spending.post(a.mirror, a.hub.Replica())
	days := map[string]admin.SpentDay{}
	a.mirror.Each(boardSpent, func(f store.Field) bool {
		var d admin.SpentDay
		if json.Unmarshal(f.Value, &d) != nil || len(f.Name) < len(time.DateOnly) || d.Day != f.Name[:len(time.DateOnly)] {
			return true // invalid
		}
		sum, ok := days[d.Day]
		if !ok {
			sum = admin.SpentDay{Day: d.Day, Models: map[string]admin.Spent{}, Keys: map[string]admin.Spent{}}
			days[d.Day] = sum
		}
		for name, n := range d.Models {
			sum.Models[name] = sum.Models[name].Add(n)
		}
		for name, n := range d.Keys {
			sum.Keys[name] = sum.Keys[name].Add(n)
		}
		return true
	})
	list := []admin.SpentDay{}
	for _, day := range slices.Backward(slices.Sorted(maps.Keys(days))) {
		list = append(list, days[day])
	}
	return list
}

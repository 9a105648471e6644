package admin

import "net/http"

// Spent is the usage of recovery beyond the answers.
type Spent struct {
	Tokens float64 `json:"tokens"`          // of prompts and answers
	Money  float64 `json:"money,omitempty"` // in the currency of the prices; 0 without them
}

// Add returns the sum of both.
func (s Spent) Add(o Spent) Spent { return Spent{s.Tokens + o.Tokens, s.Money + o.Money} }

// SpentDay is the usage of recovery on one day, UTC.
type SpentDay struct {
	Day    string           `json:"day"`
	Models map[string]Spent `json:"models"`
	Keys   map[string]Spent `json:"keys"` // by gateway key; "none" for requests without one
}

// HandleSpent adds GET /rebound/spent, {"spent": [...]}, to a mux: today and yesterday, of all replicas.
func HandleSpent(mux *http.ServeMux, days func() []SpentDay) {
	handleList(mux, "spent", days)
}

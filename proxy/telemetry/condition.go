package telemetry

// Condition is how a gateway stands, beside what its requests tell.
type Condition struct {
	StoreUp  bool // the store's server answers, or there is none
	Reloaded bool // the latest configuration is in force
	Replicas int  // that share the store, this one included
	Trouble  []string
}

// SetCondition sets what tells how the gateway stands, for the metrics and [Hub.Now]. It must not block.
func (h *Hub) SetCondition(look func() Condition) { h.metrics.condition.Store(&look) }

// SetSpend sets the function that receives all that recovery uses beyond answers, by model and gateway key as metrics call
// them. It must not block.
func (h *Hub) SetSpend(spend func(model, key string, tokens int, money float64)) {
	h.metrics.spend.Store(&spend)
}

// Replica is this process's name in the ids of events.
func (h *Hub) Replica() string { return h.replica }

func (m *metrics) stands() Condition {
	if look := m.condition.Load(); look != nil {
		return (*look)()
	}
	return Condition{StoreUp: true, Reloaded: true, Replicas: 1}
}

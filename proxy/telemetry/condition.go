package telemetry

// Condition is the state of a gateway apart from its requests.
type Condition struct {
	StoreUp  bool // the store's server answers, or there is none
	Reloaded bool // the latest configuration is active
	Replicas int  // replicas that share the store, including this one
	Trouble  []string
}

// SetCondition sets the function that returns the gateway's condition, for the metrics and [Hub.Now].
// It must not block.
func (h *Hub) SetCondition(look func() Condition) { h.metrics.condition.Store(&look) }

// SetSpend sets the function that receives the usage of recovery beyond answers, by the model and
// gateway key labels of metrics. It must not block.
func (h *Hub) SetSpend(spend func(model, key string, tokens int, money float64)) {
	h.metrics.spend.Store(&spend)
}

// Replica returns this process's name in event ids.
func (h *Hub) Replica() string { return h.replica }

func (m *metrics) stands() Condition {
	if look := m.condition.Load(); look != nil {
		return (*look)()
	}
	return Condition{StoreUp: true, Reloaded: true, Replicas: 1}
}

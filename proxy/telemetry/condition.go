package telemetry

import "github.com/prometheus/client_golang/prometheus"

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

// conditions registers the gauges of how the gateway stands.
func (m *metrics) conditions(r prometheus.Registerer) {
	gauge := func(name, help string, value func(Condition) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "rebound", Name: name, Help: help}, func() float64 { return value(m.stands()) }))
	}
	is := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	gauge("store_up", "1 while the store's server answers or there is none, 0 while this replica goes on alone.", func(c Condition) float64 { return is(c.StoreUp) })
	gauge("config_reload_success", "1 if the latest configuration is in force, 0 if it was refused and the one before stays.", func(c Condition) float64 { return is(c.Reloaded) })
	gauge("replicas", "Gateways that share the store, as this one sees them.", func(c Condition) float64 { return float64(c.Replicas) })
}

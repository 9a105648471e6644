package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/recovery"
)

// Switches gives access to what an operator has disabled or limited.
type Switches interface {
	List() []recovery.Switch
	Set(s recovery.Switch) error
	Clear(of, name string) bool
}

// HandleSwitches adds the switches' routes to a mux:
//
//	GET    /rebound/switches                   {"switches": [...]}, including those of the configuration
//	POST   /rebound/switches                   {"of", "name", "mode"}: sets a switch for all replicas
//	DELETE /rebound/switches?of=OF&name=NAME   removes it; 404 if it was not set at run time
func HandleSwitches(mux *http.ServeMux, s Switches) {
	handleList(mux, "switches", s.List)
	mux.HandleFunc("POST /rebound/switches", func(w http.ResponseWriter, r *http.Request) {
		var want recovery.Switch
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&want)
		if err == nil {
			err = want.Check()
		}
		if err == nil {
			err = s.Set(want)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, "invalid_switch", "The switch cannot be set: "+err.Error())
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /rebound/switches", func(w http.ResponseWriter, r *http.Request) {
		of, name := r.URL.Query().Get("of"), r.URL.Query().Get("name")
		if !s.Clear(of, name) {
			refuse(w, http.StatusNotFound, "not_switched", "No switch of the "+of+" "+name+" was set at run time. \"rebound targets\" lists all; those of the configuration are changed there.")
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// Replica is one of the gateways that share a store.
type Replica struct {
	ID      string    `json:"id"` // as in the ids of events
	Self    bool      `json:"self,omitempty"`
	Address string    `json:"address"` // where clients connect
	Version string    `json:"version"`
	Config  string    `json:"config"` // equal if the configurations are, apart from secrets
	Started time.Time `json:"started"`
	StoreUp bool      `json:"store_up"`
	Refused string    `json:"refused,omitempty"` // why its latest configuration was refused
}

// HandleReplicas adds GET /rebound/replicas, {"replicas": [...]}, to a mux; the answering replica
// comes first.
func HandleReplicas(mux *http.ServeMux, list func() []Replica) {
	handleList(mux, "replicas", list)
}

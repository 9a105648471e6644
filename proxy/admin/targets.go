package admin

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// Targets are the marks of what may be asked.
type Targets interface {
	Marks() []recovery.Mark
	// Clear removes the marks of a target, named as in a Mark.
	Clear(target string)
}

// HandleTargets adds the targets' routes to a mux:
//
//	GET    /rebound/targets              {"targets": [...]}: open breakers, cool-downs, what was learned
//	DELETE /rebound/targets?target=NAME  clears all of that; 404 if there is nothing
func HandleTargets(mux *http.ServeMux, t Targets) {
	mux.HandleFunc("GET /rebound/targets", func(w http.ResponseWriter, _ *http.Request) {
		marks := append([]recovery.Mark{}, t.Marks()...)
		slices.SortFunc(marks, func(a, b recovery.Mark) int {
			return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Kind, b.Kind))
		})
		respond(w, http.StatusOK, map[string]any{"targets": marks})
	})
	mux.HandleFunc("DELETE /rebound/targets", func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Query().Get("target")
		if !slices.ContainsFunc(t.Marks(), func(m recovery.Mark) bool { return m.Target == name }) {
			refuse(w, http.StatusNotFound, "target_not_marked", "Nothing is kept of a target "+name+". GET /rebound/targets lists those of which something is.")
			return
		}
		t.Clear(name)
		w.WriteHeader(http.StatusNoContent)
	})
}

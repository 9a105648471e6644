package admin

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/rebound-llm/rebound/recovery"
)

// Targets gives access to the marks of targets.
type Targets interface {
	Marks() []recovery.Mark
	// Clear removes marks of a target, named as in a Mark, or all of them if item is empty.
	Clear(target, item string)
}

// kinds is the order of a listing: marks that stop requests come first.
var kinds = []recovery.MarkKind{
	recovery.MarkDisabled, recovery.MarkSwitched, recovery.MarkBreaker, recovery.MarkClient,
	recovery.MarkCooldown, recovery.MarkLearned, recovery.MarkWindow, recovery.MarkPace,
}

// HandleTargets adds the targets' routes to a mux:
//
//	GET    /rebound/targets              {"targets": [...]}: open breakers, cool-downs, learned edits, windows, pace
//	DELETE /rebound/targets?target=NAME  clears all marks of a target, with &item=ITEM only one; 404 if there are none
func HandleTargets(mux *http.ServeMux, t Targets) {
	handleList(mux, "targets", func() []recovery.Mark {
		return slices.SortedFunc(slices.Values(t.Marks()), func(a, b recovery.Mark) int {
			return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), cmp.Compare(a.Target, b.Target),
				cmp.Compare(a.Item, b.Item), cmp.Compare(a.Detail, b.Detail))
		})
	})
	mux.HandleFunc("DELETE /rebound/targets", func(w http.ResponseWriter, r *http.Request) {
		name, item := r.URL.Query().Get("target"), r.URL.Query().Get("item")
		if !slices.ContainsFunc(t.Marks(), func(m recovery.Mark) bool { return m.Target == name && (item == "" || m.Item == item) }) {
			refuse(w, http.StatusNotFound, "target_not_marked", "Nothing that could be reset is known about "+name+". \"rebound targets\" lists all.")
			return
		}
		t.Clear(name, item)
		w.WriteHeader(http.StatusNoContent)
	})
}

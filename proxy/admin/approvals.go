package admin

import (
	"errors"
	"io"
	"net/http"
	"regexp"

	"github.com/rebound-llm/rebound/recovery"
)

// Approvals gives access to plans that wait for approval.
type Approvals interface {
	Approvals() []recovery.Approval
	Plans() []recovery.MadePlan // the latest first
	// Decide approves or rejects a plan. The errors are [recovery.ErrNoApproval] and
	// [recovery.ErrDecided], or that of a store that does not answer.
	Decide(id string, approve bool) error
}

// maxDecision limits the body of a decision, in bytes.
const maxDecision = 4 << 10

// HandleApprovals adds the approvals' routes to a mux:
//
//	GET  /rebound/plans           {"plans": [...]}, the latest plans of this process
//	GET  /rebound/approvals       {"approvals": [...]}, the latest first
//	POST /rebound/approvals/{id}  {"approve": true|false}: 204; 404 if there is none, 409 if it was decided before
func HandleApprovals(mux *http.ServeMux, a Approvals) {
	handleList(mux, "plans", a.Plans)
	handleList(mux, "approvals", a.Approvals)
	mux.HandleFunc("POST /rebound/approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxDecision))
		said := decision.FindSubmatch(body)
		if err != nil || said == nil {
			refuse(w, http.StatusBadRequest, "invalid_decision", `The body must be {"approve": true} or {"approve": false}, and nothing else.`)
			return
		}
		id := r.PathValue("id")
		switch err := a.Decide(id, string(said[1]) == "true"); {
		case errors.Is(err, recovery.ErrDecided):
			refuse(w, http.StatusConflict, "approval_decided", "The plan "+id+" was decided already.")
		case err != nil && !errors.Is(err, recovery.ErrNoApproval):
			refuse(w, http.StatusServiceUnavailable, "store_unavailable", "Nothing was decided: "+err.Error())
		case err != nil:
			refuse(w, http.StatusNotFound, "approval_not_waiting", "No plan "+id+" waits for approval. \"rebound approvals\" lists those that do.")
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// decision matches {"approve": BOOL}. A body with anything else, or with duplicates, is invalid,
// because a proxy may have read it differently.
var decision = regexp.MustCompile(`^\s*\{\s*"approve"\s*:\s*(true|false)\s*\}\s*$`)

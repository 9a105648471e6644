package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

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
		approve, ok := decision(body)
		if err != nil || !ok {
			refuse(w, http.StatusBadRequest, "invalid_decision", `The body must be {"approve": true} or {"approve": false}, and nothing else.`)
			return
		}
		id := r.PathValue("id")
		switch err := a.Decide(id, approve); {
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

// decision parses {"approve": BOOL}. A body with anything else, or with duplicates, is invalid,
// because a proxy may have read it differently.
func decision(body []byte) (approve, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	var said []any
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil || len(said) == 4 {
			return false, false
		}
		said = append(said, token)
	}
	if len(said) != 4 || said[0] != json.Delim('{') || said[1] != "approve" || said[3] != json.Delim('}') {
		return false, false
	}
	approve, ok = said[2].(bool)
	return approve, ok
}

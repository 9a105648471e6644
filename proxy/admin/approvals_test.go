package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// decisions notes what is decided.
type decisions map[string]bool

func (decisions) Approvals() []recovery.Approval { return nil }
func (d decisions) Decide(id string, approve bool) error {
	d[id] = approve
	return nil
}

func (decisions) Plans() []recovery.MadePlan {
	return []recovery.MadePlan{{Session: "s", Plan: &recovery.Plan{Strategy: recovery.PlanRetry, Iterations: 2}}}
}

// Only a body that can be read in one way decides.
func TestDecisions(t *testing.T) {
	for body, want := range map[string]struct{ decided, approve bool }{
		`{"approve": true}`:                   {true, true},
		" {\"approve\":false}\n":              {true, false},
		`{"approve":true,"approve":false}`:    {},
		`{"approve":false,"approve":true}`:    {},
		`{"approve":true,"Approve":false}`:    {},
		`{"Approve":true}`:                    {},
		`{"approve":true,"comment":"really"}`: {},
		`{"approve":"true"}`:                  {},
		`{"approve":null}`:                    {},
		`{"approve":1}`:                       {},
		`{"approve":[true]}`:                  {},
		`{"approve":true}{"approve":false}`:   {},
		`{"approve":true} x`:                  {},
		`{"approve":true`:                     {},
		`["approve",true]`:                    {},
		`true`:                                {},
		``:                                    {},
	} {
		made, mux := decisions{}, http.NewServeMux()
		HandleApprovals(mux, made)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", "/rebound/approvals/x", strings.NewReader(body)))
		approve, decided := made["x"]
		if decided != want.decided || approve != want.approve || (w.Code == http.StatusNoContent) != want.decided {
			t.Errorf("%q: decided %v, approved %v, status %d", body, decided, approve, w.Code)
		}
	}
}

// The latest plans are listed whole.
func TestPlansAreListed(t *testing.T) {
	mux := http.NewServeMux()
	HandleApprovals(mux, decisions{})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/rebound/plans", nil))
	if want := `"strategy":"retry"`; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `"estimated_iterations":2`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

package recovery

import (
	"errors"
	"time"
)

// PlanStrategy is a way on that a planner proposes.
type PlanStrategy string

// The strategies.
const (
	PlanRetry     PlanStrategy = "retry"                // the same call again
	PlanOtherTool PlanStrategy = "alternative-tool"     // another tool
	PlanAdjust    PlanStrategy = "parameter-adjustment" // the same tool with other parameters
	PlanEscalate  PlanStrategy = "escalate"             // a question for the user
	PlanGiveUp    PlanStrategy = "give-up"              // what cannot be done is left, and said
)

// PlanStrategies lists the strategies.
func PlanStrategies() []PlanStrategy {
	return []PlanStrategy{PlanRetry, PlanOtherTool, PlanAdjust, PlanEscalate, PlanGiveUp}
}

// Calls reports whether the strategy is a call of a tool.
func (s PlanStrategy) Calls() bool { return s == PlanRetry || s == PlanOtherTool || s == PlanAdjust }

// PlanHint is no plan: the note of the rules is known to help. It is of patterns only.
const PlanHint PlanStrategy = Hint

// PlanBand is what a plan's confidence allows.
type PlanBand string

// The bands.
const (
	BandAct      PlanBand = "act"      // it is carried out
	BandPropose  PlanBand = "propose"  // it is proposed, or waits for a person's approval
	BandEscalate PlanBand = "escalate" // the user is asked
)

// The sources of a plan.
const (
	PlanPlanner   = "planner"   // a model
	PlanHeuristic = "heuristic" // the rule for when the planner is of no use
	PlanLearned   = "learned"   // a pattern, by which the planner was not asked
)

// Plan is how an agent that is stuck may go on. What a model wrote of it is data:
// bounded, checked against the request, and never an instruction to the gateway.
type Plan struct {
	Strategy   PlanStrategy `json:"strategy"`
	Reasoning  string       `json:"reasoning,omitempty"`
	Tool       string       `json:"tool,omitempty"`       // that the request offers; of strategies that call one
	Parameters string       `json:"parameters,omitempty"` // a JSON object that the tool takes
	Message    string       `json:"message,omitempty"`    // the question for the user
	Expected   string       `json:"expected,omitempty"`   // what should come of it
	Confidence float64      `json:"confidence"`
	Band       PlanBand     `json:"band"`
	Source     string       `json:"source"`
	Percent    int          `json:"percent,omitempty"` // how far the work is, as the planner sees it
	Blockers   []string     `json:"blockers,omitempty"`
	Milestone  string       `json:"milestone,omitempty"` // the next one
	// Steps are the calls in their order; the first is Tool with Parameters.
	Steps      []PlanStep     `json:"steps,omitempty"`
	Iterations int            `json:"estimated_iterations,omitempty"` // calls until it works, as the planner estimates them
	Fallbacks  []PlanStrategy `json:"fallback_chain,omitempty"`       // what to try if it fails, in order
	// Forced is set where the model has to call Tool next: see plan.Config.Force.
	Forced bool `json:"forced,omitempty"`
}

// PlanStep is one call of a plan.
type PlanStep struct {
	Tool       string `json:"tool"`
	Parameters string `json:"parameters,omitempty"` // a JSON object
	Expected   string `json:"expected,omitempty"`
}

// Bare is the plan for an event: without the sentences and arguments that a model wrote.
func (p *Plan) Bare() *Plan {
	bare := &Plan{Strategy: p.Strategy, Tool: p.Tool, Confidence: p.Confidence, Band: p.Band, Source: p.Source, Percent: p.Percent,
		Iterations: p.Iterations, Fallbacks: p.Fallbacks, Forced: p.Forced}
	for _, s := range p.Steps {
		bare.Steps = append(bare.Steps, PlanStep{Tool: s.Tool})
	}
	return bare
}

// MadePlan is a plan that was made lately.
type MadePlan struct {
	Session string    `json:"session"`
	Key     string    `json:"key,omitempty"` // name of the gateway key
	Model   string    `json:"model"`
	Made    time.Time `json:"made"`
	Cause   string    `json:"cause,omitempty"` // why the planner's own was of no use
	Plan    *Plan     `json:"plan"`
}

// Approval is a plan for an agent that is stuck, and whether it may be carried out.
type Approval struct {
	ID      string    `json:"id"`
	State   string    `json:"state"` // waiting, approved or refused
	Session string    `json:"session"`
	Key     string    `json:"key,omitempty"` // name of the gateway key
	Model   string    `json:"model"`
	Made    time.Time `json:"made"`
	Until   time.Time `json:"until"` // then it is only proposed
	Plan    *Plan     `json:"plan"`
}

// Why a plan cannot be decided about.
var (
	ErrNoApproval = errors.New("no such plan waits")
	ErrDecided    = errors.New("that plan was decided already")
)

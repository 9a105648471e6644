package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// schema is the JSON schema of a planner's answer.
const schema = `{"type":"object","required":["strategy","confidence"],"properties":{` +
	`"strategy":{"type":"string","enum":["retry","alternative-tool","parameter-adjustment","escalate","give-up"]},` +
	`"reasoning":{"type":["string","null"]},` +
	`"action":{"type":["object","null"],"properties":{"toolName":{"type":["string","null"]},"parameters":{"type":["object","null"]},"escalationMessage":{"type":["string","null"]}}},` +
	`"steps":{"type":["array","null"],"items":{"type":"object","properties":{"toolName":{"type":["string","null"]},"parameters":{"type":["object","null"]},"expectedOutcome":{"type":["string","null"]}}}},` +
	`"readsOnly":{"type":["boolean","null"]},` +
	`"expectedOutcome":{"type":["string","null"]},` +
	`"estimatedIterations":{"type":["number","null"]},` +
	`"fallbackChain":{"type":["array","null"],"items":{"type":"string"}},` +
	`"confidence":{"type":"number","minimum":0,"maximum":1},` +
	`"progress":{"type":["object","null"],"properties":{"percent":{"type":["number","null"]},"blockers":{"type":["array","null"],"items":{"type":"string"}},"nextMilestone":{"type":["string","null"]}}}}}`

// Limits of an answer's parts.
const (
	maxAnswer     = 64 << 10 // bytes
	maxText       = 400      // runes of a sentence
	maxQuestion   = 500      // runes of the question for the user
	maxParameters = 4 << 10  // bytes
	maxBlockers   = 4
	maxPlanSteps  = 5
	maxIterations = 20
)

// answer is a planner's decoded answer.
type answer struct {
	Strategy  recovery.PlanStrategy `json:"strategy"`
	Reasoning string                `json:"reasoning"`
	Action    struct {
		step
		Message string `json:"escalationMessage"`
	} `json:"action"`
	Steps      []step   `json:"steps"` // after the action
	ReadsOnly  bool     `json:"readsOnly"`
	Iterations float64  `json:"estimatedIterations"`
	Fallbacks  []string `json:"fallbackChain"`
	Expected   string   `json:"expectedOutcome"`
	Confidence *float64 `json:"confidence"`
	Progress   struct {
		Percent   float64  `json:"percent"`
		Blockers  []string `json:"blockers"`
		Milestone string   `json:"nextMilestone"`
	} `json:"progress"`
}

// step is one call in a planner's answer.
type step struct {
	Tool       string          `json:"toolName"`
	Parameters json.RawMessage `json:"parameters"`
	Expected   string          `json:"expectedOutcome"`
}

// object returns the step's parameters, or "" for none.
func (s step) object() string {
	if raw := string(s.Parameters); raw != "null" && raw != "{}" {
		return raw
	}
	return ""
}

// read parses a planner's answer into a plan, or returns the reason why it is not one.
func (s *Planner) read(text string, c *call, cfg *Config) (*recovery.Plan, error) {
	a, ok := s.decode(text)
	if !ok {
		return nil, errUnusable
	}
	words := c.words
	p := &recovery.Plan{Strategy: a.Strategy, Reasoning: words(a.Reasoning, maxText), Message: words(a.Action.Message, maxQuestion), Expected: words(a.Expected, maxText),
		Confidence: *a.Confidence, Source: recovery.PlanPlanner, Percent: int(min(max(a.Progress.Percent, 0), 100)), Milestone: words(a.Progress.Milestone, maxText),
		Iterations: int(min(max(a.Iterations, 0), maxIterations))}
	for _, b := range a.Progress.Blockers[:min(len(a.Progress.Blockers), maxBlockers)] {
		if b = words(b, maxText/2); b != "" {
			p.Blockers = append(p.Blockers, b)
		}
	}
	for _, name := range a.Fallbacks {
		if f := recovery.PlanStrategy(name); f != p.Strategy && slices.Contains(recovery.PlanStrategies(), f) && !slices.Contains(p.Fallbacks, f) {
			p.Fallbacks = append(p.Fallbacks, f)
		}
	}
	if p.Strategy.Calls() {
		p.Tool = a.Action.Tool
		if p.Strategy != recovery.PlanRetry {
			p.Parameters = a.Action.object()
		}
		if err := s.check(p, c); err != nil {
			return nil, err
		}
		p.Steps = s.steps(p, a.Action.Expected, a.Steps, c, cfg)
	}
	if !cfg.permits(p) {
		return nil, fmt.Errorf("the plan is beyond its limits: %s", p.Strategy)
	}
	p.Band = cfg.band(p.Confidence)
	if t := tool(c.tools, p.Tool); p.Band == recovery.BandAct && p.Parameters != "" && (!readsOnly(t, p.Parameters) || searches(t, p.Parameters)) {
		p.Band = recovery.BandPropose // only the agent decides calls that change something or leave the machine, because tool output may have influenced the planner
	}
	p.Forced = p.Band == recovery.BandAct && a.ReadsOnly && c.knownValue != nil && p.Parameters != "" && allValues(gjson.Parse(p.Parameters), c.knownValue, 0)
	return p, nil
}

// decode finds a planner's answer in its text; ok is false if there is none. Some models put the first call among the
// steps.
func (s *Planner) decode(text string) (a answer, ok bool) {
	if len(text) > maxAnswer {
		return a, false
	}
	object, ok := s.parts.Reader.Object(string(recovery.WithoutThoughts([]byte(text))), []byte(schema))
	if !ok || json.Unmarshal([]byte(object), &a) != nil || a.Confidence == nil || !(*a.Confidence >= 0 && *a.Confidence <= 1) ||
		!slices.Contains(recovery.PlanStrategies(), a.Strategy) {
		return a, false
	}
	if a.Strategy.Calls() && a.Action.Tool == "" && len(a.Action.Parameters) == 0 && len(a.Steps) > 0 {
		a.Action.step, a.Steps = a.Steps[0], a.Steps[1:]
	}
	return a, true
}

// words cleans a text of the planner; it returns "" if the text names an unknown host or a secret file.
func (c *call) words(text string, n int) string {
	if text = trajectory.OneLine(text, n); !c.hostsKnown(text) || !hidesNoSecret(text) {
		return ""
	}
	return text
}

// steps returns the calls of a plan: the first, which is already checked, and the further ones up to the first
// that is not allowed.
func (s *Planner) steps(p *recovery.Plan, expected string, further []step, c *call, cfg *Config) []recovery.PlanStep {
	out := []recovery.PlanStep{{Tool: p.Tool, Parameters: p.Parameters, Expected: c.words(expected, maxText)}}
	for _, st := range further {
		next := &recovery.Plan{Strategy: recovery.PlanOtherTool, Tool: st.Tool, Parameters: st.object()}
		if st.Tool == c.next.Tool {
			next.Strategy = recovery.PlanAdjust
		}
		if len(out) == maxPlanSteps || s.check(next, c) != nil || len(cfg.Tools) > 0 && !cfg.permits(next) {
			break
		}
		out = append(out, recovery.PlanStep{Tool: next.Tool, Parameters: next.Parameters, Expected: c.words(st.Expected, maxText)})
	}
	return out
}

// Reasons why a plan is rejected.
var (
	errNoTool    = errors.New("the plan names a tool that the request does not offer")
	errSameTool  = errors.New("the plan's tool does not go with its strategy")
	errArguments = errors.New("the plan's parameters are not what the tool takes")
	errSameCall  = errors.New("the plan repeats the call that failed")
	errRisky     = errors.New("the plan does what may not be proposed")
	errBarred    = errors.New("the plan does what a person ruled out")
	errHost      = errors.New("the plan names a host that nobody but a tool has named")
	errSecret    = errors.New("the plan names a file of secrets")
)

// check returns the reason why the call that a plan proposes is not allowed, or nil.
func (s *Planner) check(p *recovery.Plan, c *call) error {
	if p.Tool == "" && p.Strategy != recovery.PlanOtherTool {
		p.Tool = c.next.Tool
	}
	t := tool(c.tools, p.Tool)
	rules := s.parts.Rules()
	switch {
	case t.Name == "":
		return errNoTool
	case c.next.Tool != "" && (p.Strategy == recovery.PlanOtherTool) == (t.Name == c.next.Tool):
		return errSameTool
	case !rules.Permits(strings.Join(trajectory.NameWords(t.Name), " ")):
		return errRisky
	case p.Parameters != "" && sends(t):
		return errRisky
	case p.Strategy == recovery.PlanRetry && c.failed != nil && !hidesNoSecret(c.failed.Arguments):
		return errSecret
	case isBarred(c.barred, t, p.Parameters), p.Strategy == recovery.PlanRetry && c.failed != nil && isBarred(c.barred, t, c.failed.Arguments):
		return errBarred
	case p.Parameters == "" && p.Strategy == recovery.PlanAdjust:
		return errArguments
	case p.Parameters == "":
		return nil
	case len(p.Parameters) > maxParameters || !declared(t, p.Parameters) || !s.parts.Reader.Fits(t, p.Parameters):
		return errArguments
	case c.failed != nil && t.Name == c.failed.Tool && same(p.Parameters, c.failed.Arguments):
		return errSameCall
	}
	return c.checkTexts(t, p.Parameters, rules)
}

// checkTexts returns the reason why the texts of a call's parameters are not allowed, or nil.
func (c *call) checkTexts(t transcript.Tool, parameters string, rules Rules) error {
	runs := trajectory.ToolOf(t).Uses&(trajectory.UseShell|trajectory.UseCode) != 0
	abroad := online(t)
	if !c.completeURLs(t, parameters) {
		return errHost
	}
	return walk(gjson.Parse(parameters), 0, func(text string) error {
		switch {
		case !c.hostsKnown(text), abroad && !c.bareHostsKnown(text):
			return errHost
		case !hidesNoSecret(text):
			return errSecret
		case runs && (!rules.Permits(text) || !plainCommand(text)):
			return errRisky
		case runs && trajectory.DeedsOfLine(text)&recovery.Reaches != 0 && !c.wordsKnown(text):
			return errHost
		}
		return nil
	})
}

// readsOnly reports whether a call probably changes nothing, judged by its tool and arguments.
func readsOnly(t transcript.Tool, parameters string) bool {
	made := trajectory.Call{Tool: t.Name, Arguments: parameters}
	return made.Reads() || !trajectory.Changes(t)
}

// isBarred reports whether a call would do something that the user or the instructions forbid.
func isBarred(barred recovery.Deeds, t transcript.Tool, parameters string) bool {
	if barred == 0 {
		return false
	}
	known := trajectory.ToolOf(t)
	return known.Deeds(parameters)&barred != 0
}

// tool returns the tool with the name, or the zero Tool.
func tool(list []transcript.Tool, name string) transcript.Tool {
	if i := slices.IndexFunc(list, func(t transcript.Tool) bool { return t.Name == name && name != "" }); i >= 0 {
		return list[i]
	}
	return transcript.Tool{}
}

// everyParameter reports whether as returns true for all parameters of a call. as gets the tool's declaration of
// the parameter, or the zero Parameter if there is none.
func everyParameter(t transcript.Tool, parameters string, as func(p trajectory.Parameter, v gjson.Result) bool) bool {
	list, ok := trajectory.Parameters(t), true
	gjson.Parse(parameters).ForEach(func(key, v gjson.Result) bool {
		var p trajectory.Parameter
		if i := slices.IndexFunc(list, func(p trajectory.Parameter) bool { return p.Name == key.Str }); i >= 0 {
			p = list[i]
		}
		ok = as(p, v)
		return ok
	})
	return ok
}

// declared reports whether the tool declares all of these parameters, or none at all.
func declared(t transcript.Tool, parameters string) bool {
	return len(trajectory.Parameters(t)) == 0 ||
		everyParameter(t, parameters, func(p trajectory.Parameter, _ gjson.Result) bool { return p.Name != "" })
}

// same reports whether the arguments of two calls are equivalent.
func same(a, b string) bool {
	x, y := trajectory.Call{Arguments: a}, trajectory.Call{Arguments: b}
	return x.Canonical() == y.Canonical()
}

// allValues reports whether said returns true for all strings and numbers of a value, without member names.
func allValues(v gjson.Result, said func(value string) bool, depth int) (ok bool) {
	if !v.IsObject() && !v.IsArray() {
		return v.Type != gjson.String && v.Type != gjson.Number || said(v.String())
	}
	ok = depth < 16
	v.ForEach(func(_, item gjson.Result) bool {
		ok = ok && allValues(item, said, depth+1)
		return ok
	})
	return ok
}

// walk calls visit with all strings of a value, including member names. It also visits a list of strings as one
// text, because the list may be a command line.
func walk(v gjson.Result, depth int, visit func(text string) error) (err error) {
	switch {
	case depth > 16:
		return errArguments
	case v.Type == gjson.String:
		return visit(v.Str)
	case v.IsObject():
		v.ForEach(func(key, item gjson.Result) bool {
			if err = visit(key.Str); err == nil {
				err = walk(item, depth+1, visit)
			}
			return err == nil
		})
	case v.IsArray():
		var texts []string
		v.ForEach(func(_, item gjson.Result) bool {
			if item.Type == gjson.String {
				texts = append(texts, item.Str)
			}
			err = walk(item, depth+1, visit)
			return err == nil
		})
		if err == nil && len(texts) > 1 {
			err = visit(strings.Join(texts, " "))
		}
	}
	return err
}

func short(s string) string { return trajectory.Shorten(s, 40) }

package repair

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// explain turns a validator's error into text that a model can act on: where, what
// was expected, what came. It lists at most four complaints, sorted and shortened.
func explain(e *jsonschema.ValidationError) string {
	lines := complaints(400, e)
	if len(lines) > 4 {
		lines = append(lines[:4], fmt.Sprintf("and %d more", len(lines)-4))
	}
	return trajectory.Shorten(strings.Join(lines, "; "), maxProblem)
}

// lacksRequired introduces the names in a complaint about missing required members.
const lacksRequired = " lacks the required "

// complaints returns the sorted complaints of some errors. It visits at most budget errors.
func complaints(budget int, of ...*jsonschema.ValidationError) (lines []string) {
	for _, e := range of {
		collect(e, &lines, &budget)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func collect(e *jsonschema.ValidationError, lines *[]string, budget *int) {
	if *budget--; *budget < 0 {
		return
	}
	at := location(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		*lines = append(*lines, at+" matches none of the allowed forms"+explainAlternatives(e))
		return
	case *kind.Required:
		*lines = append(*lines, at+lacksRequired+quoteList(k.Missing))
	case *kind.Type:
		*lines = append(*lines, at+" must be "+strings.Join(k.Want, " or ")+", not "+k.Got)
	case *kind.Enum:
		*lines = append(*lines, at+" must be one of "+listed(k.Want, 12)+", not "+shortValue(k.Got))
	default:
		if len(e.Causes) == 0 {
			*lines = append(*lines, at+" does not match: "+trajectory.Shorten(e.DetailedOutput().Error.String(), 200))
		}
	}
	for _, c := range e.Causes {
		collect(c, lines, budget)
	}
}

// explainAlternatives returns the first complaints of the alternatives, in parentheses.
func explainAlternatives(e *jsonschema.ValidationError) string {
	lines := complaints(40, e.Causes...)
	return " (" + trajectory.Shorten(strings.Join(lines[:min(3, len(lines))], "; "), 400) + ")"
}

// location writes a path in the arguments as filters[0].name, quoted.
func location(path []string) string {
	if len(path) == 0 {
		return "the object"
	}
	var b strings.Builder
	for i, p := range path[:min(len(path), 12)] {
		switch _, err := strconv.Atoi(p); {
		case err == nil && i > 0:
			b.WriteString("[" + p + "]")
		case i > 0:
			b.WriteString("." + trajectory.Shorten(p, 60))
		default:
			b.WriteString(trajectory.Shorten(p, 60))
		}
	}
	return strconv.Quote(b.String())
}

// quoteList lists the first eight names.
func quoteList(names []string) string { return listed(names, 8) }

// listed lists the first values, at most most.
func listed[T any](values []T, most int) string {
	var parts []string
	for _, v := range values[:min(most, len(values))] {
		parts = append(parts, shortValue(v))
	}
	if len(values) > most {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// shortValue renders a value in at most about 60 characters.
func shortValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return strconv.Quote(trajectory.Shorten(v, 60))
	}
	raw, _ := json.Marshal(v) // a number, true, false or null
	return trajectory.Shorten(string(raw), 60)
}

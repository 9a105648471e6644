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

// explain turns a validator's error into what a model can act on: where, what
// was expected, what came. At most four complaints, sorted, bounded.
func explain(e *jsonschema.ValidationError) string {
	lines := complaints(400, e)
	if len(lines) == 0 {
		return "they do not match the tool's schema"
	}
	if len(lines) > 4 {
		lines = append(lines[:4], fmt.Sprintf("and %d more", len(lines)-4))
	}
	return trajectory.Shorten(strings.Join(lines, "; "), maxProblem)
}

// lacks is how a complaint about a required member begins that is not there.
const lacks = " lacks the required "

// complaints are those of some errors, sorted; at most so many are looked at.
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
	at := where(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		*lines = append(*lines, at+" matches none of the allowed forms"+forms(e))
		return
	case *kind.Required:
		*lines = append(*lines, at+lacks+names(k.Missing))
	case *kind.Type:
		*lines = append(*lines, at+" must be "+strings.Join(k.Want, " or ")+", not "+k.Got)
	case *kind.Enum:
		*lines = append(*lines, at+" must be one of "+choices(k.Want)+", not "+short(k.Got))
	default:
		if len(e.Causes) == 0 {
			*lines = append(*lines, at+" does not match: "+trajectory.Shorten(e.DetailedOutput().Error.String(), 200))
		}
	}
	for _, c := range e.Causes {
		collect(c, lines, budget)
	}
}

// forms says what the alternatives complain about, shortly.
func forms(e *jsonschema.ValidationError) string {
	lines := complaints(40, e.Causes...)
	if len(lines) == 0 {
		return ""
	}
	return " (" + trajectory.Shorten(strings.Join(lines[:min(3, len(lines))], "; "), 400) + ")"
}

// where names a place in the arguments as people write it: filters[0].name
func where(path []string) string {
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

func names(list []string) string {
	quoted := make([]string, 0, 8)
	for _, n := range list[:min(8, len(list))] {
		quoted = append(quoted, strconv.Quote(trajectory.Shorten(n, 60)))
	}
	if len(list) > 8 {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

func choices(values []any) string {
	var parts []string
	for _, v := range values[:min(12, len(values))] {
		parts = append(parts, short(v))
	}
	if len(values) > 12 {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// short renders a value in a few characters.
func short(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return strconv.Quote(trajectory.Shorten(v, 60))
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "a value"
	}
	return trajectory.Shorten(string(raw), 60)
}

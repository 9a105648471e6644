package repair

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// The names of coercions.
const (
	ruleToNumber    = "string_to_number"
	ruleToBool      = "string_to_boolean"
	ruleToNull      = "string_to_null"
	ruleToString    = "number_to_string"
	ruleToList      = "value_to_list"
	ruleFromList    = "list_to_value"
	ruleParseInside = "json_in_string"
	ruleKeyAlias    = "name_alias"
	ruleEnum        = "enum_spelling"
	ruleDropNull    = "null_dropped"
)

// coercer changes values towards a schema where that loses nothing and only
// one way leads there.
type coercer struct {
	root  any
	rules []string
	work  *int // that is left
	// lossless restricts it to JSON in strings, for tools about which nothing may be guessed.
	lossless bool
}

// coerce returns a changed copy of v, with the rules that changed it.
func coerce(v *value, doc any, work *int, lossless bool) (*value, []string) {
	c := &coercer{root: doc, work: work, lossless: lossless}
	out := c.value(v.clone(), doc, 0)
	return out, c.rules
}

func (c *coercer) note(rule string) {
	if !slices.Contains(c.rules, rule) {
		c.rules = append(c.rules, rule)
	}
}

func (c *coercer) value(v *value, s any, depth int) *value {
	if *c.work--; *c.work <= 0 || depth > maxDepth {
		return v
	}
	forms := c.forms(s, 0)
	if len(forms) == 0 {
		return v
	}
	var fitting []map[string]any
	for _, f := range forms {
		if v.fits(kinds(f)) {
			fitting = append(fitting, f)
		}
	}
	if len(fitting) > 0 {
		return c.inside(v, fitting, depth)
	}
	// Another type: the change must be the same whichever alternative asks for it.
	var found *value
	var rules []string
	for _, f := range forms {
		for _, t := range kinds(f) {
			out, rule := c.change(v, t, f)
			if out == nil {
				continue
			}
			sub := &coercer{root: c.root, work: c.work, lossless: c.lossless}
			out = sub.value(out, f, depth+1)
			if found != nil && !found.equal(out) {
				return v
			}
			found, rules = out, append([]string{rule}, sub.rules...)
		}
	}
	if found == nil {
		return v
	}
	for _, rule := range rules {
		c.note(rule)
	}
	return found
}

// change makes a value of type t of v, or nil. f is the form that wants it.
func (c *coercer) change(v *value, t string, f map[string]any) (*value, string) {
	switch {
	case c.lossless:
		if text := strings.TrimSpace(v.str()); v.kind == kindString && complete(text) {
			switch t {
			case "array":
				return parsed(text, kindArray), ruleParseInside
			case "object":
				return parsed(text, kindObject), ruleParseInside
			}
		}
		return nil, ""
	case t == "array" && v.kind != kindNull:
		if v.kind == kindString {
			text := strings.TrimSpace(v.str())
			if strings.HasPrefix(text, "[") {
				return parsed(text, kindArray), ruleParseInside
			}
			// "a, b" may be one item or two.
			if text == "" || strings.ContainsAny(text, ",;\n|") && !c.wants(f["items"], "object") {
				return nil, ""
			}
		}
		if v.kind == kindObject && !c.wants(f["items"], "object") {
			return nil, ""
		}
		return &value{kind: kindArray, items: []*value{v}}, ruleToList
	case v.kind == kindArray && len(v.items) == 1 && v.items[0].fits([]string{t}):
		return v.items[0], ruleFromList
	case v.kind == kindNumber && t == "string":
		return stringValue(v.text), ruleToString
	case v.kind == kindString:
		return fromString(strings.TrimSpace(v.str()), t)
	}
	return nil, ""
}

// wants reports whether a schema allows the type expressly.
func (c *coercer) wants(s any, t string) bool {
	return slices.ContainsFunc(c.forms(s, 0), func(f map[string]any) bool { return slices.Contains(kinds(f), t) })
}

// fromString reads a string as the type that was wanted.
func fromString(text, t string) (*value, string) {
	switch t {
	case "integer":
		if isNumber(text) && integral(text) && text != "-0" {
			whole, _, _ := strings.Cut(text, ".")
			return &value{kind: kindNumber, text: whole}, ruleToNumber
		}
	case "number":
		if isNumber(text) {
			return &value{kind: kindNumber, text: text}, ruleToNumber
		}
	case "boolean":
		if lower := strings.ToLower(text); lower == "true" || lower == "false" {
			return &value{kind: kindBool, text: lower}, ruleToBool
		}
	case "null":
		if text == "null" || text == "None" {
			return &value{kind: kindNull, text: "null"}, ruleToNull
		}
	case "object":
		return parsed(text, kindObject), ruleParseInside
	}
	return nil, ""
}

// parsed reads JSON that stands in a string. It must be complete.
func parsed(text string, want valueKind) *value {
	v, rules, err := readTolerant(text, false)
	if err != nil || v.kind != want || slices.Contains(rules, ruleExtraBrackets) {
		return nil
	}
	return v
}

// inside coerces the parts of a value whose own type is right.
func (c *coercer) inside(v *value, forms []map[string]any, depth int) *value {
	switch v.kind {
	case kindString:
		c.enum(v, forms)
	case kindArray:
		if len(forms) != 1 {
			return v
		}
		prefix, _ := forms[0]["prefixItems"].([]any)
		for i := range v.items {
			if i < len(prefix) {
				v.items[i] = c.value(v.items[i], prefix[i], depth+1)
			} else if items, ok := forms[0]["items"].(map[string]any); ok {
				v.items[i] = c.value(v.items[i], items, depth+1)
			}
		}
	case kindObject:
		if f := onlyObject(forms); f != nil {
			c.object(v, f, depth)
			for _, part := range every(f["allOf"]) {
				if m := c.resolve(part); m != nil && m["properties"] != nil {
					c.object(v, m, depth)
				}
			}
		}
	}
	return v
}

func every(v any) []any {
	list, _ := v.([]any)
	return list[:min(len(list), 64)]
}

// onlyObject is the only alternative for objects, nil where there are more.
func onlyObject(forms []map[string]any) (found map[string]any) {
	for _, f := range forms {
		if f["properties"] == nil && f["additionalProperties"] == nil && f["allOf"] == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = f
	}
	return found
}

// enum gives a string the spelling of the only enumerated one that it can mean.
func (c *coercer) enum(v *value, forms []map[string]any) {
	if c.lossless {
		return
	}
	text := v.str()
	if len(text) > 256 {
		return
	}
	key, found := trajectory.Plain(text), ""
	for _, f := range forms {
		values, ok := limits(f)
		if !ok {
			return
		}
		for _, want := range values {
			s, ok := want.(string)
			if !ok || !strings.EqualFold(s, strings.TrimSpace(text)) && (trajectory.Plain(s) != key || key == "") {
				continue
			}
			if s == text || found != "" && found != s {
				return
			}
			found = s
		}
	}
	if found != "" && utf8.ValidString(found) {
		v.text = stringValue(found).text
		c.note(ruleEnum)
	}
}

// object renames members to the properties that they mean, coerces their
// values, and drops nulls that stand for "not given".
func (c *coercer) object(v *value, f map[string]any, depth int) {
	properties := propertiesOfForm(f)
	if _, patterned := f["patternProperties"]; !patterned && !c.lossless {
		c.rename(v, properties, f)
	}
	required := map[string]bool{}
	for _, name := range every(f["required"]) {
		if s, ok := name.(string); ok {
			required[s] = true
		}
	}
	kept := v.members[:0]
	for _, m := range v.members {
		p, ok := properties[m.name]
		if !ok {
			if more, is := f["additionalProperties"].(map[string]any); is {
				m.val = c.value(m.val, more, depth+1)
			}
			kept = append(kept, m)
			continue
		}
		null := m.val.kind == kindNull || m.val.kind == kindString && !c.wants(p, "string") && isNull(m.val.str())
		if null && !c.lossless && !required[m.name] && !c.permits(p) {
			if m.val.kind == kindString {
				c.note(ruleToNull)
			}
			c.note(ruleDropNull)
			continue
		}
		m.val = c.value(m.val, p, depth+1)
		kept = append(kept, m)
	}
	v.members = kept
}

func isNull(s string) bool { return s == "null" || s == "None" }

// permits reports whether a schema allows null.
func (c *coercer) permits(s any) bool {
	forms := c.forms(s, 0)
	return len(forms) == 0 || slices.ContainsFunc(forms, func(f map[string]any) bool {
		k := kinds(f)
		return k == nil || slices.Contains(k, "null")
	})
}

// rename maps members that no property is named after to the one property that
// differs in spelling only, if nothing else claims it.
func (c *coercer) rename(v *value, properties, f map[string]any) {
	if _, open := f["additionalProperties"].(map[string]any); open || len(properties) == 0 || len(properties) > 2000 {
		return
	}
	byKey := make(map[string]string, len(properties))
	for name := range properties {
		key := trajectory.Plain(name)
		if _, taken := byKey[key]; taken {
			byKey[key] = "" // two properties that differ in spelling only
		} else {
			byKey[key] = name
		}
	}
	claims := map[string]int{}
	for _, m := range v.members {
		if name := byKey[trajectory.Plain(m.name)]; name != "" {
			claims[name]++
		}
	}
	for i := range v.members {
		name := byKey[trajectory.Plain(v.members[i].name)]
		if _, known := properties[v.members[i].name]; known || name == "" || claims[name] > 1 {
			continue
		}
		v.members[i].name, v.members[i].lit = name, ""
		c.note(ruleKeyAlias)
	}
}

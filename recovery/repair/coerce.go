package repair

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// The coercions, as named in events.
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

// coercer converts values to the types of a schema, if the conversion loses nothing
// and is the only one possible.
type coercer struct {
	root     any
	rules    []string
	workLeft *int // of the whole answer
	// lossless allows only the decoding of JSON in strings, for guarded tools.
	lossless bool
}

// coerce coerces v, whose parts it changes, and returns the result with the rules that were applied.
func coerce(v *value, doc any, work *int, lossless bool) (*value, []string) {
	c := &coercer{root: doc, workLeft: work, lossless: lossless}
	out := c.coerce(v, doc, 0)
	return out, c.rules
}

func (c *coercer) addRule(rule string) {
	if !slices.Contains(c.rules, rule) {
		c.rules = append(c.rules, rule)
	}
}

func (c *coercer) coerce(v *value, s any, depth int) *value {
	if *c.workLeft--; *c.workLeft <= 0 || depth > maxDepth {
		return v
	}
	forms := c.alternatives(s, 0)
	if len(forms) == 0 {
		return v
	}
	var fitting []map[string]any
	for _, f := range forms {
		if v.hasType(allowedTypes(f)) {
			fitting = append(fitting, f)
		}
	}
	if len(fitting) > 0 {
		return c.coerceChildren(v, fitting, depth)
	}
	// The type is wrong: all alternatives that a conversion can reach must give the same value.
	var found *value
	var rules []string
	for _, f := range forms {
		for _, t := range allowedTypes(f) {
			out, rule := c.convert(v, t, f)
			if out == nil {
				continue
			}
			sub := &coercer{root: c.root, workLeft: c.workLeft, lossless: c.lossless}
			out = sub.coerce(out, f, depth+1)
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
		c.addRule(rule)
	}
	return found
}

// convert converts v to the type t, or returns nil. f is the schema alternative that requires t.
func (c *coercer) convert(v *value, t string, f map[string]any) (*value, string) {
	switch {
	case c.lossless:
		if text := strings.TrimSpace(v.str()); v.kind == kindString && complete(text) {
			switch t {
			case "array":
				return parseString(text, kindArray), ruleParseInside
			case "object":
				return parseString(text, kindObject), ruleParseInside
			}
		}
		return nil, ""
	case t == "array" && v.kind != kindNull:
		if v.kind == kindString {
			text := strings.TrimSpace(v.str())
			if strings.HasPrefix(text, "[") {
				return parseString(text, kindArray), ruleParseInside
			}
			// "a, b" may be one item or two.
			if text == "" || strings.ContainsAny(text, ",;\n|") && !c.allowsExplicitly(f["items"], "object") {
				return nil, ""
			}
		}
		if v.kind == kindObject && !c.allowsExplicitly(f["items"], "object") {
			return nil, ""
		}
		return &value{kind: kindArray, items: []*value{v}}, ruleToList
	case v.kind == kindArray && len(v.items) == 1 && v.items[0].hasType([]string{t}):
		return v.items[0], ruleFromList
	case v.kind == kindNumber && t == "string":
		return stringValue(v.text), ruleToString
	case v.kind == kindString:
		return fromString(strings.TrimSpace(v.str()), t)
	}
	return nil, ""
}

// allowsExplicitly reports whether a schema names the type.
func (c *coercer) allowsExplicitly(s any, t string) bool {
	return slices.ContainsFunc(c.alternatives(s, 0), func(f map[string]any) bool { return slices.Contains(allowedTypes(f), t) })
}

// fromString parses a string as the type t.
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
		return parseString(text, kindObject), ruleParseInside
	}
	return nil, ""
}

// parseString parses a string that holds one complete JSON value of the wanted kind.
func parseString(text string, want valueKind) *value {
	v, rules, err := readTolerant(text, false)
	if err != nil || v.kind != want || slices.Contains(rules, ruleExtraBrackets) {
		return nil
	}
	return v
}

// coerceChildren coerces the parts of a value whose own type is right, and the spelling of an enumerated string.
func (c *coercer) coerceChildren(v *value, forms []map[string]any, depth int) *value {
	switch v.kind {
	case kindString:
		c.matchEnum(v, forms)
	case kindArray:
		if len(forms) != 1 {
			return v
		}
		prefix, _ := forms[0]["prefixItems"].([]any)
		for i := range v.items {
			if i < len(prefix) {
				v.items[i] = c.coerce(v.items[i], prefix[i], depth+1)
			} else if items, ok := forms[0]["items"].(map[string]any); ok {
				v.items[i] = c.coerce(v.items[i], items, depth+1)
			}
		}
	case kindObject:
		if f := onlyObjectSchema(forms); f != nil {
			c.coerceObject(v, f, depth)
			for _, part := range listItems(f["allOf"]) {
				if m := c.resolve(part); m != nil && m["properties"] != nil {
					c.coerceObject(v, m, depth)
				}
			}
		}
	}
	return v
}

func listItems(v any) []any {
	list, _ := v.([]any)
	return list[:min(len(list), 64)]
}

// onlyObjectSchema returns the only alternative for objects, nil if there are several.
func onlyObjectSchema(forms []map[string]any) (found map[string]any) {
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

// matchEnum gives a string the spelling of the only enumerated value that it can mean.
func (c *coercer) matchEnum(v *value, forms []map[string]any) {
	if c.lossless {
		return
	}
	text := v.str()
	if len(text) > 256 {
		return
	}
	key, found := trajectory.Plain(text), ""
	for _, f := range forms {
		values, ok := enumValues(f)
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
		c.addRule(ruleEnum)
	}
}

// coerceObject renames members to the properties that they mean, coerces their
// values, and drops nulls that mean "not given".
func (c *coercer) coerceObject(v *value, f map[string]any, depth int) {
	properties := propertiesIn(f)
	if _, patterned := f["patternProperties"]; !patterned && !c.lossless {
		c.renameMembers(v, properties, f)
	}
	required := map[string]bool{}
	for _, name := range listItems(f["required"]) {
		if s, ok := name.(string); ok {
			required[s] = true
		}
	}
	kept := v.members[:0]
	for _, m := range v.members {
		p, ok := properties[m.name]
		if !ok {
			if more, is := f["additionalProperties"].(map[string]any); is {
				m.val = c.coerce(m.val, more, depth+1)
			}
			kept = append(kept, m)
			continue
		}
		null := m.val.kind == kindNull || m.val.kind == kindString && !c.allowsExplicitly(p, "string") && isNull(m.val.str())
		if null && !c.lossless && !required[m.name] && !c.allowsNull(p) {
			if m.val.kind == kindString {
				c.addRule(ruleToNull)
			}
			c.addRule(ruleDropNull)
			continue
		}
		m.val = c.coerce(m.val, p, depth+1)
		kept = append(kept, m)
	}
	v.members = kept
}

func isNull(s string) bool { return s == "null" || s == "None" }

// allowsNull reports whether a schema allows null.
func (c *coercer) allowsNull(s any) bool {
	forms := c.alternatives(s, 0)
	return len(forms) == 0 || slices.ContainsFunc(forms, func(f map[string]any) bool {
		k := allowedTypes(f)
		return k == nil || slices.Contains(k, "null")
	})
}

// renameMembers renames a member that is no property to the one property that differs
// only in spelling, if no other member means that property.
func (c *coercer) renameMembers(v *value, properties, f map[string]any) {
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
		c.addRule(ruleKeyAlias)
	}
}

package strategy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// refusedKeyword matches the keyword that a refusal names, in the wordings of the providers.
var refusedKeyword = recovery.NewPattern(`(?i)(?:unknown name "|unknown field:? "|unsupported (?:schema )?(?:keyword|key)s?:? ['"` + "`" + `]?|['"` + "`" + `]|keyword ['"` + "`" + `]?)` +
	`(\$?[A-Za-z]{3,30})(?:['"` + "`" + `]|\b)(?: at '?tools|[^.]{0,40}(?:is )?not (?:permitted|supported|allowed)|: cannot find field)?`)

// keywords are the keywords of JSON Schema that some provider refuses.
var keywords = map[string]bool{
	"$schema": true, "$id": true, "$comment": true, "additionalProperties": true, "additionalItems": true, "patternProperties": true, "propertyNames": true,
	"unevaluatedProperties": true, "unevaluatedItems": true, "dependentRequired": true, "dependentSchemas": true, "default": true, "examples": true, "const": true,
	"format": true, "pattern": true, "minLength": true, "maxLength": true, "minItems": true, "maxItems": true, "uniqueItems": true, "minimum": true, "maximum": true,
	"exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true, "minProperties": true, "maxProperties": true, "title": true, "deprecated": true,
	"readOnly": true, "writeOnly": true, "contentEncoding": true, "contentMediaType": true, "prefixItems": true, "contains": true, "not": true, "if": true, "then": true,
	"else": true, "allOf": true, "oneOf": true, "nullable": true,
}

// schemaEdits are the edits of whole schemas by words of a refusal.
var schemaEdits = []wordedEdit{
	{[]string{"at the top level", "at top level", "input_schema.type: field required", "at path 'root'", "schema missing properties", "parameters.type is required"}, recovery.Edit{Conform: recovery.ConformObject}},
	{[]string{
		"input_schema: field required", "parameters is empty", "parameters is required", "parameters are required", "'parameters' is a required", "missing parameters",
	}, recovery.Edit{Conform: recovery.ConformMissing}},
	{[]string{"is not of type 'object', 'boolean'", "missing items", "items: missing", "items: field required"}, recovery.Edit{Conform: recovery.ConformItems}},
	{toolNameRefused, recovery.Edit{Conform: recovery.ConformNames}},
}

// TrimSchema changes the tools' schemas so that a target accepts them: it removes the keywords that the refusal names,
// otherwise all keywords that some provider refuses, from the schema that it names, then from all.
func TrimSchema(s *recovery.Situation, f *recovery.Failure) (recovery.Action, bool) {
	if a, ok := dropImplied(s, f); ok {
		return a, true
	}
	text := f.Signal.Message
	lower := strings.ToLower(text)
	if strictMeant.MatchString(lower) {
		if a, ok := editTools(s, f, recovery.ConformStrict); ok {
			return a, true
		}
	}
	if a, ok := byWords(s, f, lower, schemaEdits); ok {
		return a, true
	}
	for _, m := range partEdits {
		if m.about.MatchString(lower) {
			if a, ok := editTools(s, f, m.edit.Conform); ok {
				return a, true
			}
		}
	}
	// One action removes all named keywords, since each would cost a refusal otherwise.
	a := recovery.Action{Target: s.Current(f)}
	for _, m := range refusedKeyword.FindAllStringSubmatch(text, 16) {
		if !keywords[m[1]] {
			continue
		}
		if one, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformKeyword, Field: m[1]}); ok {
			a.Edits = append(a.Edits, one.Edits...)
		}
	}
	if len(a.Edits) > 0 {
		return a, true
	}
	if rootWanted.MatchString(lower) {
		if a, ok := withEdit(s, f, recovery.Edit{Conform: recovery.ConformObject}); ok {
			return a, true
		}
	}
	if typesWanted.MatchString(lower) {
		if a, ok := editTools(s, f, recovery.ConformTyped); ok {
			return a, true
		}
	}
	if a, ok := editTools(s, f, recovery.ConformPlain); ok {
		return a, true
	}
	if a, ok := editTools(s, f, recovery.ConformTyped); ok {
		return a, true
	}
	return withEdit(s, f, recovery.Edit{Conform: recovery.ConformObject})
}

// rootWanted matches the refusal of a schema that is no object with properties.
var rootWanted = recovery.NewPattern(`parameters"?[,.]\s*"?(?:type|properties)\b`)

// strictMeant matches refusals of schemas that the provider compiles because the tool is strict.
var strictMeant = recovery.NewPattern(`is required to be supplied|strict|\bgrammar is too\b|grammar compilation|complex for compilation`)

// partEdits are the edits of parts of schemas by what a refusal is about: schemas that are nested too deep or within themselves,
// enumerations of numbers, fields beside alternatives, empty descriptions.
var partEdits = []subjectEdit{
	{recovery.NewPattern(`nest(?:ing|ed)\b.{0,30}(?:depth|level|deep)|schema depth|depth.{0,30}\b(?:exceed|limit|maximum)|recursive`), recovery.Edit{Conform: recovery.ConformFlat}},
	{recovery.NewPattern(`enum.{0,40}\b(?:type_)?string`), recovery.Edit{Conform: recovery.ConformEnum}},
	{recovery.NewPattern(`alongside any_?of`), recovery.Edit{Conform: recovery.ConformAlone}},
	{recovery.NewPattern(`\bdescription\b.{0,90}(?:empty|greater than or equal|at least)`), recovery.Edit{Conform: recovery.ConformUntold}},
}

// typesWanted matches refusals of parts of a schema without a type, with a type beside alternatives, or of references.
var typesWanted = recovery.NewPattern(`'type'|\btype\b[^.]{0,20}(?:is not|not) defined|anyof|any_of|\$ref|\$defs|references?\b|unhashable|type: .?list|unrecognized schema`)

// editTools makes an edit of the tool that the refusal names or, if another one is refused then, of all tools. The cause may be a tool
// of this client, so that nothing is remembered for the tools of others.
func editTools(s *recovery.Situation, f *recovery.Failure, conform string) (recovery.Action, bool) {
	tools, c := s.Exchange.Body.Tools(), &s.Exchange.Candidates[s.Current(f)]
	all := recovery.Edit{Conform: conform, Field: recovery.ToolsMark(tools)}
	if c.Had(func(o recovery.Edit) bool { return o == all }) {
		return recovery.Action{}, false
	}
	if !c.Had(func(o recovery.Edit) bool { return o.Conform == conform }) {
		if t, ok := namedTool(tools, f.Signal.Message); ok {
			if a, ok := withEdit(s, f, recovery.Edit{Conform: conform, Field: recovery.SchemaMark(t.Parameters)}); ok {
				return a, true
			}
		}
	} else if conform == recovery.ConformStrict && !slices.ContainsFunc(c.Edits, func(o recovery.Edit) bool { return o.Conform == conform }) {
		return recovery.Action{}, false // it did not help the tool that is named
	}
	if a, ok := withEdit(s, f, all); ok {
		return a, true
	}
	return withEdit(s, f, recovery.Edit{Conform: conform}) // another edit renames the tools
}

// toolIndex matches the place of a tool in the list, as in tools[3], tools.3 or function_declarations[3].
var toolIndex = recovery.NewPattern(`(?:function_declarations\[|tools[\[.])(\d{1,4})`)

// namedTool returns the tool that a refusal names, by its name in quotes or by its place.
func namedTool(tools []transcript.Tool, text string) (t transcript.Tool, ok bool) {
	for _, t := range tools {
		for _, quote := range [...]string{"'", `"`, "`"} {
			if t.Name != "" && strings.Contains(text, quote+t.Name+quote) {
				return t, true
			}
		}
	}
	if places := toolIndex.FindAllStringSubmatch(text, 4); len(places) > 0 {
		if n, err := strconv.Atoi(places[len(places)-1][1]); err == nil && n < len(tools) {
			return tools[n], true
		}
	}
	return t, false
}

package count

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// definitions are the request's tools and answer schema.
type definitions struct {
	tools  []transcript.Tool // including the deprecated "functions"
	schema []byte            // of the answer; nil without one
}

// fixedParts returns the definitions of a request.
func fixedParts(b *transcript.Body) (d definitions) {
	d.tools = b.Tools()
	if form, _ := b.ContentForm(); form == transcript.FormSchema {
		d.schema = b.Form()
	}
	if raw, ok := b.Field("functions"); ok && raw[0] == '[' {
		d.tools = slices.Clip(d.tools)
		for _, f := range gjson.ParseBytes(raw).Array() {
			d.tools = append(d.tools, transcript.Tool{Name: f.Get("name").String(), Description: f.Get("description").String(),
				Parameters: []byte(f.Get("parameters").Raw), Raw: []byte(f.Raw)})
		}
	}
	return d
}

// Overheads of definitions, measured by the authors of
// github.com/hmarr/openai-chat-tokens for functions, approximate for schemas.
const (
	toolsHead    = "namespace functions {\n\n"
	toolsTail    = "} // namespace functions"
	toolsTokens  = 9
	systemTokens = -4 // with a system message, the tools share its framing
	schemaFrame  = 16
)

// toolFrame returns the tokens around the tool definitions.
func (s *modelCounter) toolFrame(b *transcript.Body) int {
	n := toolsTokens + s.Count(toolsHead) + s.Count(toolsTail)
	for _, m := range b.Messages() {
		if m.Role == transcript.RoleSystem || m.Role == transcript.RoleDeveloper {
			// They follow its text after a line break.
			text := m.Text()
			text = text[max(0, len(text)-32):]
			return n + systemTokens + s.Count(text+"\n") - s.Count(text)
		}
	}
	return n
}

// tool counts one definition. OpenAI's models see it as a TypeScript type, as is known from
// models that quote it. For all others the JSON is counted, as open models' chat templates
// render it.
func (s *modelCounter) tool(t transcript.Tool) int {
	if !s.Exact || t.Name == "" {
		return s.Count(string(t.Raw))
	}
	var b strings.Builder
	writeComment(&b, 0, t.Description)
	b.WriteString("type ")
	b.WriteString(t.Name)
	p := gjson.ParseBytes(t.Parameters)
	if properties := p.Get("properties"); properties.IsObject() && properties.Get("@keys.0").Exists() {
		b.WriteString(" = (_: {\n")
		writeProperties(&b, p, 0)
		b.WriteString("}) => any;\n\n")
	} else {
		b.WriteString(" = () => any;\n\n")
	}
	return s.Count(b.String())
}

// schemaDepth limits the nesting of a schema that is rendered.
const schemaDepth = 24

func writeComment(b *strings.Builder, indent int, text string) {
	if text != "" {
		b.WriteString(strings.Repeat(" ", indent))
		b.WriteString("// ")
		b.WriteString(text)
		b.WriteByte('\n')
	}
}

// writeProperties writes the members of an object type, one a line.
func writeProperties(b *strings.Builder, object gjson.Result, depth int) {
	required := map[string]bool{}
	object.Get("required").ForEach(func(_, name gjson.Result) bool {
		required[name.String()] = true
		return true
	})
	object.Get("properties").ForEach(func(name, p gjson.Result) bool {
		writeComment(b, depth, p.Get("description").String())
		b.WriteString(strings.Repeat(" ", depth))
		b.WriteString(name.String())
		if !required[name.String()] {
			b.WriteByte('?')
		}
		b.WriteString(": ")
		writeType(b, p, depth)
		b.WriteByte(',')
		if v := p.Get("default"); v.Exists() {
			b.WriteString(" // default: ")
			b.WriteString(v.Raw)
		}
		b.WriteByte('\n')
		return true
	})
}

// writeType writes a schema as a type.
func writeType(b *strings.Builder, p gjson.Result, depth int) {
	if depth > schemaDepth || !p.IsObject() {
		b.WriteString("any")
		return
	}
	for _, union := range []string{"anyOf", "oneOf"} {
		if list := p.Get(union); list.IsArray() {
			writeUnion(b, list, func(v gjson.Result) { writeType(b, v, depth+1) })
			return
		}
	}
	if list := p.Get("enum"); list.IsArray() {
		writeUnion(b, list, func(v gjson.Result) { b.WriteString(v.Raw) })
		return
	}
	if kinds := p.Get("type"); kinds.IsArray() {
		// Each kind once, so that nested schemas do not grow exponentially.
		seen := map[string]bool{}
		writeUnion(b, kinds, func(v gjson.Result) {
			if kind := v.String(); !seen[kind] {
				seen[kind] = true
				writeKind(b, p, kind, depth)
			}
		})
		return
	}
	writeKind(b, p, p.Get("type").String(), depth)
}

func writeUnion(b *strings.Builder, list gjson.Result, write func(gjson.Result)) {
	first := true
	list.ForEach(func(_, v gjson.Result) bool {
		if !first {
			b.WriteString(" | ")
		}
		first = false
		write(v)
		return true
	})
}

// writeKind writes a schema of one type.
func writeKind(b *strings.Builder, p gjson.Result, kind string, depth int) {
	switch kind {
	case "integer":
		b.WriteString("number")
	case "string", "number", "boolean", "null":
		b.WriteString(kind)
	case "array":
		if items := p.Get("items"); items.Exists() {
			writeType(b, items, depth+1)
			b.WriteString("[]")
		} else {
			b.WriteString("any[]")
		}
	case "object":
		b.WriteString("{\n")
		writeProperties(b, p, depth+2)
		b.WriteString(strings.Repeat(" ", depth))
		b.WriteByte('}')
	default:
		b.WriteString("any")
	}
}

package configs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/rebound-llm/rebound/proxy/redact"
)

// Limits of a configuration. The parser is recursive, and quadratic in the number of keys of one map, so both are
// checked before it runs.
const (
	maxBytes  = 1 << 20
	maxTokens = 60_000
	maxDepth  = 100     // enclosing tokens, several per level
	maxNodes  = 100_000 // with aliases expanded
)

// kind is the kind of a node.
type kind uint8

const (
	null kind = iota
	scalar
	mapping
	sequence
	refused // a problem was already reported
)

// place is a position in the file, from 1.
type place struct{ line, column int }

// pair is one entry of a mapping.
type pair struct {
	key   string
	at    place
	value ast.Node
	dup   int // line of the first entry with this key; 0 if this is the first
}

// parseText parses one document; the node is nil for an empty one. An error means that the document cannot be parsed.
// Other problems, such as unknown aliases, are reported.
func (r *reader) parseText(data []byte) (n ast.Node, at place, err error) {
	if len(data) > maxBytes {
		return nil, place{}, fmt.Errorf("is larger than 1MiB, which no configuration is: check that this is the right file")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) {
			return nil, place{i + 1, 1}, errors.New("is not UTF-8 text: save the file as UTF-8")
		}
		if j := bytes.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == 0x7f }); j >= 0 {
			return nil, place{i + 1, utf8.RuneCount(line[:j]) + 1}, fmt.Errorf("has the control character %q: remove it", line[j])
		}
	}
	// A panic of the parser on hostile text must not stop the gateway.
	defer func() {
		if r := recover(); r != nil {
			n, at, err = nil, place{}, errors.New("cannot be read as YAML: check indentation, quotes and brackets")
		}
	}()
	tokens := lexer.Tokenize(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if at, err := checkTokens(tokens); err != nil {
		return nil, at, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			return nil, tokenPlace(y.GetToken()), fmt.Errorf("is not valid YAML: %s", explain(y.GetMessage(), y.GetToken()))
		}
		return nil, place{}, errors.New("is not valid YAML: check indentation, quotes and brackets")
	}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if n != nil {
			return nil, nodePlace(doc.Body), errors.New("is a second document: everything belongs into one, remove the ---")
		}
		n = doc.Body
	}
	if n != nil {
		ast.Walk(r, n)
	}
	return n, place{}, nil
}

// explain rewords the parser's most common errors so that they say what to do.
func explain(message string, at *token.Token) string {
	if at != nil && strings.ContainsAny(at.Value, "}]") {
		return "a bracket is closed that was not opened"
	}
	for _, e := range [...]struct{ has, means string }{
		{"found character '\t'", "a tab cannot indent, use spaces"},
		{"mapping value is not allowed", "there is a second colon: put the value into quotes, or the key into its own line"},
		{"unexpected key name", "this line, or the one before, has no colon: write key: value"},
		{"non-map value is specified", "the indentation does not fit the lines above"},
		{"value is not allowed in this context", "the indentation does not fit the lines above"},
		{"could not find end character", "a quote is opened and not closed"},
		{"end token", "a bracket is opened and not closed"},
		{"flow map content", "a comma follows a comma"},
		{"unexpected scalar value type", "a comma follows a comma, or a value is missing"},
		{"must be specified", "a bracket is opened and not closed, or a comma is missing"},
	} {
		if strings.Contains(message, e.has) {
			return e.means
		}
	}
	return redact.Quote(message)
}

// checkTokens limits number and nesting of tokens before the recursive parser runs.
func checkTokens(tokens token.Tokens) (place, error) {
	if len(tokens) > maxTokens {
		return tokenPlace(tokens[maxTokens]), errors.New("has too many keys and values for a configuration: check that this is the right file")
	}
	var columns []int // columns of the blocks that enclose the current token, outside brackets
	flow, chain := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
			continue
		case token.MappingStartType, token.SequenceStartType:
			flow, chain = flow+1, 0
		case token.MappingEndType, token.SequenceEndType:
			flow, chain = max(flow-1, 0), 0
		case token.CollectEntryType:
			chain = 0
		default:
			if flow > 0 {
				chain++
				break
			}
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		if len(columns)+flow+chain > maxDepth {
			return tokenPlace(t), errors.New("is nested too deeply: nothing here needs more than a few levels")
		}
	}
	return place{}, nil
}

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{t.Position.Line, t.Position.Column}
}

func nodePlace(n ast.Node) place {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 && n.Values[0].Key != nil {
			return tokenPlace(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		if n.Key != nil {
			return tokenPlace(n.Key.GetToken())
		}
	}
	return tokenPlace(n.GetToken())
}

// Visit implements ast.Visitor: it resolves aliases and reports unsupported syntax. An anchor is defined after its end, so
// that no alias refers to an anchor around it.
func (r *reader) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		ast.Walk(r, n.Value)
		if n.Name != nil {
			r.anchors[n.Name.GetToken().Value] = n.Value
		}
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if r.aliased[n] = r.anchors[name]; r.aliased[n] == nil {
			r.reportAt(nodePlace(n), false, "", "refers to *%s, but no &%s stands before it", name, name)
		}
	case *ast.TagNode:
		r.reportAt(nodePlace(n), false, "", "has the tag %s: tags are not used here, remove it", n.Start.Value)
	default:
		return r
	}
	return nil
}

// follow resolves anchors and aliases, and returns the node with its kind.
func (r *reader) follow(n ast.Node) (ast.Node, kind) {
	switch in := n.(type) {
	case nil, *ast.NullNode:
		return n, null
	case *ast.AnchorNode:
		return r.follow(in.Value)
	case *ast.AliasNode:
		if to := r.aliased[in]; to != nil {
			return r.follow(to)
		}
	case *ast.TagNode: // it would match ast.ScalarNode below
	case ast.MapNode:
		return n, mapping
	case ast.ArrayNode:
		return n, sequence
	case ast.ScalarNode:
		return n, scalar
	}
	return n, refused
}

// text returns a scalar's text as written.
func text(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		if n.Value == nil {
			return ""
		}
		return n.Value.Value
	}
	return n.GetToken().Value
}

// afford counts a node and reports whether the limit allows it, so that aliases cannot expand a small file without bound.
// The first node above the limit is a problem.
func (r *reader) afford(n ast.Node) bool {
	if r.visits++; r.visits == maxNodes+1 {
		r.reportAt(nodePlace(n), false, "", "has too many values once its aliases are put in place: write them out, or use fewer")
	}
	return r.visits <= maxNodes
}

// pairs returns the entries of a map, then those of merged maps with other keys.
func (r *reader) pairs(n ast.Node) (list []pair) {
	own := map[string]int{}
	var merged []ast.Node
	for it := n.(ast.MapNode).MapRange(); it.Next() && r.afford(n); {
		at := tokenPlace(it.Key().GetToken())
		name, isName := it.Key().(ast.ScalarNode)
		switch {
		case it.Key().IsMergeKey():
			merged = append(merged, it.Value())
		case !isName:
			r.reportAt(at, false, "", "has a key that is not a name")
		default:
			key := text(name)
			list = append(list, pair{key: key, at: at, value: it.Value(), dup: own[key]})
			if own[key] == 0 {
				own[key] = at.line
			}
		}
	}
	for len(merged) > 0 {
		from, is := r.follow(merged[0])
		merged = merged[1:]
		switch is {
		case sequence:
			merged = append(slices.Clone(from.(*ast.SequenceNode).Values), merged...)
		case mapping:
			for _, p := range r.pairs(from) {
				if own[p.key] == 0 && p.dup == 0 && r.afford(from) {
					own[p.key] = p.at.line
					list = append(list, p)
				}
			}
		case scalar:
			r.reportAt(nodePlace(from), false, "", "is merged with <<, but is not a map")
		}
	}
	return list
}

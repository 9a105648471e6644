package configs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a configuration may be. The parser is recursive and quadratic in the
// number of keys of one map, so both are bounded before it runs.
const (
	maxBytes  = 1 << 20
	maxTokens = 60_000
	maxDepth  = 100     // tokens that enclose one another, not levels
	maxNodes  = 100_000 // after aliases were put in place
)

// kind is what a node is.
type kind uint8

const (
	null kind = iota
	scalar
	mapping
	sequence
)

// place is a position in the file, from 1.
type place struct{ line, column int }

// node is a piece of YAML without the ways in which it can be written:
// anchors, aliases, merges and styles are gone.
type node struct {
	kind   kind
	at     place
	text   string // of a scalar, unquoted
	quoted bool   // a quoted scalar is text even if it looks like a number
	pairs  []pair
	items  []*node
	size   int // nodes in it, aliases counted as often as they occur
}

// pair is one entry of a mapping.
type pair struct {
	key   string
	at    place
	value *node
	dup   int // line of an earlier entry with this key, 0 when there is none
}

// parseText reads one document. The node is nil for an empty one.
func parseText(data []byte) (n *node, at place, err error) {
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
	// The parser is not ours; what it does with hostile text must not stop the gateway.
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
			return nil, tokenPlace(y.GetToken()), fmt.Errorf("is not valid YAML: %s", explain(y.GetMessage()))
		}
		return nil, place{}, errors.New("is not valid YAML: check indentation, quotes and brackets")
	}
	b := builder{anchors: map[string]*node{}}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if n != nil {
			return nil, nodePlace(doc.Body), errors.New("is a second document: everything belongs into one, remove the ---")
		}
		n = b.build(doc.Body)
		if b.err != nil {
			return nil, b.at, b.err
		}
	}
	return n, place{}, nil
}

// explain gives the parser's commonest complaints in words that say what to do.
func explain(message string) string {
	for _, e := range [...]struct{ has, means string }{
		{"found character '\t'", "a tab cannot indent, use spaces"},
		{"mapping value is not allowed", "there is a second colon: put the value into quotes, or the key into its own line"},
		{"unexpected key name", "this line, or the one before, has no colon: write key: value"},
		{"value is not allowed in this context", "the indentation does not fit the lines above"},
		{"could not find end character", "a quote is opened and not closed"},
		{"must be specified", "a bracket is opened and not closed, or a comma is missing"},
	} {
		if strings.Contains(message, e.has) {
			return e.means
		}
	}
	return mask(message)
}

// checkTokens bounds number and nesting before the recursive parser runs.
func checkTokens(tokens token.Tokens) (place, error) {
	if len(tokens) > maxTokens {
		return tokenPlace(tokens[maxTokens]), errors.New("has too many keys and values for a configuration: check that this is the right file")
	}
	var columns []int // what encloses the current token, outside of brackets
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

// builder turns the parser's tree into nodes. The first error stops it.
type builder struct {
	anchors map[string]*node
	total   int
	at      place
	err     error
}

func (b *builder) fail(at place, format string, args ...any) *node {
	if b.err == nil {
		b.at, b.err = at, fmt.Errorf(format, args...)
	}
	return &node{at: at, size: 1}
}

// count adds to the nodes that the whole would have with its aliases written out.
func (b *builder) count(n int, at place) bool {
	b.total += n
	if b.total > maxNodes {
		b.fail(at, "has too many values once its aliases are put in place: write them out, or use fewer")
	}
	return b.err == nil
}

func (b *builder) build(in ast.Node) *node {
	if in == nil {
		return &node{size: 1}
	}
	at := nodePlace(in)
	if b.err != nil || !b.count(1, at) {
		return &node{at: at, size: 1}
	}
	switch in := in.(type) {
	case *ast.NullNode:
		return &node{at: at, size: 1}
	case *ast.StringNode:
		t := in.Token.Type
		return &node{kind: scalar, at: at, text: in.Value, quoted: t == token.SingleQuoteType || t == token.DoubleQuoteType, size: 1}
	case *ast.LiteralNode:
		if in.Value == nil {
			return &node{kind: scalar, at: at, quoted: true, size: 1}
		}
		return &node{kind: scalar, at: at, text: in.Value.Value, quoted: true, size: 1}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return &node{kind: scalar, at: at, text: in.GetToken().Value, size: 1}
	case *ast.MappingNode:
		return b.mapping(at, in.Values)
	case *ast.MappingValueNode:
		return b.mapping(at, []*ast.MappingValueNode{in})
	case *ast.SequenceNode:
		out := &node{kind: sequence, at: at, size: 1}
		for _, v := range in.Values {
			item := b.build(v)
			out.items = append(out.items, item)
			out.size += item.size
		}
		return out
	case *ast.AnchorNode:
		out := b.build(in.Value)
		if in.Name != nil {
			b.anchors[in.Name.GetToken().Value] = out
		}
		return out
	case *ast.AliasNode:
		name := in.Value.GetToken().Value
		out, ok := b.anchors[name]
		if !ok {
			return b.fail(at, "refers to *%s, but no &%s stands before it", name, name)
		}
		b.count(out.size, at)
		return out
	case *ast.TagNode:
		return b.fail(at, "has the tag %s: tags are not used here, remove it", in.Start.Value)
	}
	return b.fail(at, "is a kind of YAML that is not used here (%s)", strings.ToLower(in.Type().String()))
}

func (b *builder) mapping(at place, values []*ast.MappingValueNode) *node {
	out := &node{kind: mapping, at: at, size: 1}
	own := map[string]int{}
	var merged []*node
	for _, v := range values {
		if v == nil || v.Key == nil {
			continue
		}
		keyAt := tokenPlace(v.Key.GetToken())
		value := b.build(v.Value)
		if b.err != nil {
			return out
		}
		out.size += value.size
		if value.at == (place{}) {
			value.at = keyAt
		}
		if v.Key.IsMergeKey() {
			if value.kind == sequence {
				merged = append(merged, value.items...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		var key string
		switch k := v.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.NanNode, *ast.InfinityNode:
			key = k.GetToken().Value
		default:
			return b.fail(keyAt, "has a key that is not a name")
		}
		out.pairs = append(out.pairs, pair{key: key, at: keyAt, value: value, dup: own[key]})
		if own[key] == 0 {
			own[key] = keyAt.line
		}
	}
	for _, m := range merged {
		if m.kind != mapping {
			return b.fail(m.at, "is merged with <<, but is not a map")
		}
		for _, p := range m.pairs {
			if own[p.key] == 0 && p.dup == 0 {
				own[p.key] = max(p.at.line, 1)
				out.pairs = append(out.pairs, p)
				out.size += p.value.size
				if !b.count(p.value.size, at) {
					return out
				}
			}
		}
	}
	return out
}

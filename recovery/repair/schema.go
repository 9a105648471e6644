package repair

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// schema is a compiled schema. It is safe for concurrent use.
type schema struct {
	doc      any                // the schema as it was given, decoded; nil if it is not understood
	compiled *jsonschema.Schema // relaxed; nil: whatever is an object passes
	count    int                // subschemas
	enums    int                // values in the largest enumeration
	outline  *outline           // what of it can be checked without decoding; nil: nothing

	mu   sync.Mutex // held during a validation, because work belongs to it
	work meter
}

// meter counts the subschemas that a validation applies. A schema of a few
// hundred bytes can describe more work than there is time for: each level
// refers to the next one twice.
type meter struct{ left int }

// errWork ends a validation that takes too long.
var errWork = errors.New("the validation takes too long")

// cost is the work that one subschema's keywords are. It is compiled into every subschema.
type cost struct {
	meter *meter
	each  int
}

// Validate implements jsonschema.SchemaExt. It panics to end the validation:
// the library has no other way. check recovers.
func (c cost) Validate(*jsonschema.ValidatorContext, any) {
	if c.meter.left -= c.each; c.meter.left < 0 {
		panic(errWork)
	}
}

// check validates a decoded value. Both results are nil if it passes; skipped
// is set if that could not be found out within bounds, of which one is the work
// that is left for the answer.
func (s *schema) check(v any, work *int) (failure *jsonschema.ValidationError, skipped bool) {
	if s.compiled == nil {
		return nil, true
	}
	n, ok := measure(v, 0)
	if *work -= n; !ok || *work <= 0 || n*max(1, s.enums) > 20*maxWork {
		return nil, true
	}
	defer func() {
		if e := recover(); e != nil {
			if err, ok := e.(error); !ok || !errors.Is(err, errWork) {
				panic(e)
			}
			failure, skipped = nil, true
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work.left = min(maxWork, *work)
	*work -= s.work.left
	defer func() { *work += max(s.work.left, 0) }()
	if err := s.compiled.Validate(v); err != nil {
		if errors.As(err, &failure) {
			return failure, false
		}
		return nil, true
	}
	return nil, false
}

// measure counts the values in v; ok is false for numbers that are too long for
// exact arithmetic, and for nesting beyond the bounds.
func measure(v any, depth int) (n int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	n = 1
	add := func(v any) bool {
		k, ok := measure(v, depth+1)
		n += k
		return ok
	}
	switch v := v.(type) {
	case json.Number:
		return 1, tame(string(v))
	case []any:
		for _, item := range v {
			if !add(item) {
				return 0, false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !add(item) {
				return 0, false
			}
		}
	}
	return n, true
}

// tame reports whether a number is short enough to compute with: 1e1000000 is
// nine bytes long and half a megabyte as an integer.
func tame(number string) bool {
	if len(number) > 100 {
		return false
	}
	i := strings.IndexAny(number, "eE")
	return i < 0 || len(strings.TrimLeft(number[i+1:], "+-0")) <= 3
}

// memo remembers what was made of bytes that come again and again. It is safe for
// concurrent use.
type memo[V any] struct {
	*store.Cache[madeOf, V]
	seed maphash.Seed
	each int // what an entry counts, besides its bytes
}

// madeOf names bytes by their hash, which is seeded, and their length.
type madeOf struct {
	hash   uint64
	length int
}

func newMemo[V any](most, bytes int) memo[V] {
	return memo[V]{store.NewCache[madeOf, V](bytes), maphash.MakeSeed(), bytes / most}
}

// of finds what was made of raw, or makes it, of a copy that stays as it is.
func (m *memo[V]) of(raw []byte, produce func(own []byte) V) V {
	key := madeOf{transcript.Sum(m.seed, 0, raw), len(raw)}
	v, ok := m.Get(key)
	if !ok {
		v = produce(bytes.Clone(raw)) // two may make the same, which is harmless
		m.Put(key, v, len(raw)+m.each)
	}
	return v
}

// schemas compiles schemas and remembers them by their bytes. It is safe for
// concurrent use.
type schemas struct{ memo[*schema] }

func newSchemas() *schemas {
	return &schemas{newMemo[*schema](maxCachedSchemas, maxCachedBytes)}
}

// get compiles raw, or finds it. The result is never nil; where no work is left for
// the answer it checks nothing.
func (c *schemas) get(raw []byte, work *int) *schema {
	if len(raw) == 0 || len(raw) > maxSchema || *work <= 0 {
		return &schema{}
	}
	return c.of(raw, func(own []byte) *schema {
		s := compile(own)
		*work -= compileWork * s.count
		return s
	})
}

// compile never fails: what cannot be compiled does not validate.
func compile(raw []byte) *schema {
	s := &schema{}
	doc, ok := decode(raw, maxSchemaDepth)
	if !ok {
		return s
	}
	if _, ok := measure(doc, 0); !ok {
		return s
	}
	relaxer := relaxer{}
	relaxed := relaxer.root(doc)
	if relaxer.count > maxSubschemas {
		return s
	}
	s.doc, s.count, s.enums = doc, relaxer.count, relaxer.enums
	if len(relaxer.refs) > 0 && !relaxer.inside() {
		return s
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refusing{})
	c.UseRegexpEngine(patterns)
	c.AssertVocabs()
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "urn:rebound:work",
		Compile: func(_ *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
			return cost{&s.work, 1 + width(obj)}, nil
		},
	})
	const location = "urn:rebound:schema"
	if c.AddResource(location, relaxed) != nil {
		return s
	}
	if compiled, err := c.Compile(location); err == nil {
		s.compiled, s.outline = compiled, outlineOf(relaxed, 0)
	}
	return s
}

// width is how many values and subschemas one schema lists itself.
func width(obj map[string]any) (n int) {
	for _, v := range obj {
		switch v := v.(type) {
		case []any:
			n += len(v)
		case map[string]any:
			n += len(v)
		}
	}
	return n
}

// decode parses JSON with numbers as they are spelled.
func decode(raw []byte, depth int) (v any, ok bool) {
	if transcript.Valid(raw, depth) != nil {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// refusing loads nothing: a schema that a client sent must not make the gateway
// read its files or call other hosts.
type refusing struct{}

var errRefused = errors.New("references outside of the schema are not followed")

func (refusing) Load(string) (any, error) { return nil, errRefused }

// patterns compiles a pattern. One that Go does not know (look-ahead), or that
// is too long, matches nothing: only property names are ever matched, and one
// that matches nothing demands nothing.
func patterns(s string) (jsonschema.Regexp, error) {
	if len(s) <= maxPattern {
		if re, err := regexp.Compile(s); err == nil {
			return re, nil
		}
	}
	return nothing(s), nil
}

type nothing string

func (n nothing) String() string        { return string(n) }
func (nothing) MatchString(string) bool { return false }

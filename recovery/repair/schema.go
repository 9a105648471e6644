package repair

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// schema is a compiled schema. It is safe for concurrent use.
type schema struct {
	doc      any                // the decoded original; nil if it is not understood
	compiled *jsonschema.Schema // relaxed; nil: any object passes
	count    int                // subschemas
	enums    int                // values in the largest enumeration
	outline  *outline           // the fast check of raw bytes; nil: there is none

	mu    sync.Mutex // held during a validation, which owns meter
	meter meter
}

// meter limits the subschemas that a validation applies. A schema of a few hundred bytes
// can cause exponential work, if each level refers twice to the next.
type meter struct{ left int }

// errWork aborts a validation that exceeds its work.
var errWork = errors.New("the validation takes too long")

// cost is a keyword, compiled into every subschema, that charges the work of the others.
type cost struct {
	meter *meter
	work  int
}

// Validate implements jsonschema.SchemaExt. It panics to abort the validation, because
// the library offers no other way; check recovers.
func (c cost) Validate(*jsonschema.ValidatorContext, any) {
	if c.meter.left -= c.work; c.meter.left < 0 {
		panic(errWork)
	}
}

// check validates a decoded value and charges the work. failure is nil if it passes.
// skipped is true if it could not be checked within the bounds. The schema must be compiled.
func (s *schema) check(v any, work *int) (failure *jsonschema.ValidationError, skipped bool) {
	n, ok := countValues(v, 0)
	if *work -= n; !ok || *work <= 0 || n*max(1, s.enums) > 20*maxValidationWork {
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
	s.meter.left = min(maxValidationWork, *work)
	*work -= s.meter.left
	defer func() { *work += max(s.meter.left, 0) }()
	errors.As(s.compiled.Validate(v), &failure) // every error of the library is one
	return failure, false
}

// countValues counts the values in v. ok is false for numbers that are too long for
// exact arithmetic, and for nesting beyond maxDepth.
func countValues(v any, depth int) (n int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	n = 1
	add := func(v any) bool {
		k, ok := countValues(v, depth+1)
		n += k
		return ok
	}
	switch v := v.(type) {
	case json.Number:
		return 1, boundedNumber(string(v))
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

// boundedNumber reports whether a number is small enough for exact arithmetic: 1e1000000
// has nine bytes as text and half a megabyte as an integer.
func boundedNumber(number string) bool {
	if len(number) > 100 {
		return false
	}
	i := strings.IndexAny(number, "eE")
	return i < 0 || len(strings.TrimLeft(number[i+1:], "+-0")) <= 3
}

// memo caches values that are made from bytes. It is safe for concurrent use.
type memo[V any] struct {
	*store.Cache[memoKey, V]
	seed          maphash.Seed
	entryOverhead int // what an entry counts in addition to its bytes
}

// memoKey is the seeded hash and the length of the bytes.
type memoKey struct {
	hash   uint64
	length int
}

func newMemo[V any](most, bytes int) memo[V] {
	return memo[V]{store.NewCache[memoKey, V](bytes), maphash.MakeSeed(), bytes / most}
}

// getOrMake returns the cached value for raw read as kind. If there is none, it calls
// produce with a copy, which produce may keep.
func (m *memo[V]) getOrMake(kind uint64, raw []byte, produce func(own []byte) V) V {
	key := memoKey{transcript.Sum(m.seed, kind, raw), len(raw)}
	v, ok := m.Get(key)
	if !ok {
		v = produce(bytes.Clone(raw)) // concurrent calls may both do this, which is harmless
		m.Put(key, v, len(raw)+m.entryOverhead)
	}
	return v
}

// schema returns the compiled schema of raw, cached by its bytes. The result is never nil;
// without work left it checks nothing.
func (m *Mender) schema(raw []byte, work *int) *schema {
	if len(raw) == 0 || len(raw) > maxSchema || *work <= 0 {
		return &schema{}
	}
	return m.schemas.getOrMake(0, raw, func(own []byte) *schema {
		s := compile(own)
		*work -= compileWork * s.count
		return s
	})
}

// compile never fails: a schema that cannot be compiled accepts any object.
func compile(raw []byte) *schema {
	s := &schema{}
	if transcript.Valid(raw, maxSchemaDepth) != nil {
		return s
	}
	doc := decode(bytes.NewReader(raw))
	if _, ok := countValues(doc, 0); !ok {
		return s
	}
	relaxer := relaxer{}
	relaxed := relaxer.root(doc)
	if relaxer.count > maxSubschemas {
		return s
	}
	s.doc, s.count, s.enums = doc, relaxer.count, relaxer.enums
	if len(relaxer.refs) > 0 && !relaxer.refsAreLocal() {
		return s
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	c.AssertVocabs()
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "urn:rebound:work",
		Compile: func(_ *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
			return cost{&s.meter, 1 + listedCount(obj)}, nil
		},
	})
	const location = "urn:rebound:schema"
	_ = c.AddResource(location, relaxed) // fails only for a location that is taken
	if compiled, err := c.Compile(location); err == nil {
		s.compiled, s.outline = compiled, outlineOf(relaxed, 0)
	}
	return s
}

// listedCount counts the values and subschemas that one schema lists directly.
func listedCount(obj map[string]any) (n int) {
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

// decode decodes valid JSON and keeps the spelling of numbers.
func decode(in io.Reader) (v any) {
	d := json.NewDecoder(in)
	d.UseNumber()
	_ = d.Decode(&v)
	return v
}

// noLoader refuses to load anything: a client's schema must not make the gateway
// read files or call other hosts.
type noLoader struct{}

var errNoLoader = errors.New("references outside of the schema are not followed")

func (noLoader) Load(string) (any, error) { return nil, errNoLoader }

// compilePattern compiles a pattern. One that Go does not support (look-ahead) or that
// is too long matches nothing. That never makes a schema stricter, because only
// patternProperties are left to match: relaxer removes pattern.
func compilePattern(s string) (jsonschema.Regexp, error) {
	if len(s) <= maxPattern {
		if re, err := regexp.Compile(s); err == nil {
			return re, nil
		}
	}
	return matchNothing(s), nil
}

type matchNothing string

func (n matchNothing) String() string        { return string(n) }
func (matchNothing) MatchString(string) bool { return false }

package repair

import (
	"errors"
	"fmt"
	"path"
)

// Config tunes validation and mending of answers.
type Config struct {
	Enabled bool `yaml:"enabled"`
	// Destructive and Safe are patterns (as in path.Match) of names of tools that
	// are, or are not, treated as tools that change something. Destructive wins.
	// Tools in neither are judged by name, description and parameters.
	Destructive []string `yaml:"destructive"`
	Safe        []string `yaml:"safe"`
	// EmptyCall asks again where a request offers tools and the answer calls
	// none: for agents whose every turn must call a tool.
	EmptyCall bool `yaml:"empty_call"`
	// JSONStream says what happens to streamed JSON under response_format: pass
	// it on as it comes, or hold it until it is complete and judged.
	JSONStream JSONStream       `yaml:"json_stream"`
	Repetition RepetitionConfig `yaml:"repetition"`
}

// JSONStream is what happens to streamed JSON answers.
type JSONStream string

// The values.
const (
	JSONPass JSONStream = "pass"
	JSONHold JSONStream = "hold"
)

// RepetitionConfig says when the end of an answer, which repeats one unit byte
// for byte, is a runaway. Both limits must be reached. Units of 200 bytes and
// more need half the repetitions. What programs and tables repeat (arguments,
// units with little but punctuation, markup and code) needs four times as much,
// and rules, blobs of hex and the like in arguments are never one.
type RepetitionConfig struct {
	Enabled     bool `yaml:"enabled"`
	Repetitions int  `yaml:"repetitions"` // of the unit
	Bytes       int  `yaml:"bytes"`       // of all repetitions together
	Unit        int  `yaml:"unit"`        // longest unit in bytes
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		Enabled: true, JSONStream: JSONPass,
		Repetition: RepetitionConfig{Enabled: true, Repetitions: 40, Bytes: 4096, Unit: 2000},
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var errs []error
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"destructive", c.Destructive}, {"safe", c.Safe}} {
		for i, p := range list.patterns {
			if _, err := path.Match(p, "x"); err != nil || p == "" {
				errs = append(errs, fmt.Errorf("%s[%d]: %q is not a pattern", list.key, i, p))
			}
		}
	}
	if c.JSONStream != JSONPass && c.JSONStream != JSONHold {
		errs = append(errs, fmt.Errorf("json_stream: %q is none of pass, hold", c.JSONStream))
	}
	r := c.Repetition
	if r.Repetitions < 10 {
		errs = append(errs, errors.New("repetition.repetitions: must be at least 10"))
	}
	if r.Bytes < 512 {
		errs = append(errs, errors.New("repetition.bytes: must be at least 512"))
	}
	if r.Unit < 1 || r.Unit > 4000 {
		errs = append(errs, errors.New("repetition.unit: must be between 1 and 4000"))
	}
	return errors.Join(errs...)
}

// The bounds of one judgement. What exceeds them is not validated or mended.
const (
	maxArguments = 1 << 20 // bytes of arguments or content that are parsed
	maxRead      = 4 << 20 // the same of all arguments of one answer, some of them more than once
	maxDepth     = 96      // nesting of arguments and content
	maxCalls     = 128     // calls of one answer
	maxJoined    = 16      // calls in the arguments of one
	maxUnwraps   = 6       // layers around one value
	maxQuote     = 2000    // bytes of a flaw's quote
	maxProblem   = 1200    // bytes of a flaw's problem

	maxSchema        = 256 << 10 // bytes of one schema
	maxSchemaDepth   = 64        // its nesting
	maxSubschemas    = 2000      // compiling is quadratic in them
	maxPattern       = 1000      // bytes of one pattern
	maxCachedSchemas = 512
	maxCachedBytes   = 8 << 20   // of all schemas in the cache
	maxKit           = 256 << 10 // bytes of one list of tools that is remembered
	maxCachedKits    = 256
	maxCachedTools   = 8 << 20   // bytes of all of them
	maxWork          = 200_000   // subschemas applied in one validation, and values compared
	maxJudged        = 1_000_000 // the same of all that is done about one answer
	compileWork      = 100       // what compiling one subschema counts among it
)

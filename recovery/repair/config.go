package repair

import (
	"path"

	"github.com/rebound-llm/rebound/recovery"
)

// Config configures the validation and repair of answers.
type Config struct {
	Enabled bool `yaml:"enabled"`
	// Destructive and Safe are patterns (path.Match) of the names of tools that
	// are, or are not, treated as tools that change something. Destructive wins.
	// Other tools are classified by name, description and parameters.
	Destructive []string `yaml:"destructive"`
	Safe        []string `yaml:"safe"`
	// EmptyCall asks again if a request offers tools and the answer calls
	// none: for agents that must call a tool in each turn.
	EmptyCall bool `yaml:"empty_call"`
	// JSONStream says whether streamed JSON under response_format is passed on as
	// it arrives, or held until it is complete and judged.
	JSONStream JSONStream       `yaml:"json_stream"`
	Repetition RepetitionConfig `yaml:"repetition"`
}

// JSONStream says how streamed JSON answers are delivered.
type JSONStream string

// The values of JSONStream.
const (
	JSONPass JSONStream = "pass"
	JSONHold JSONStream = "hold"
)

// RepetitionConfig says when an answer whose end repeats one unit byte for byte is a
// runaway. Both Repetitions and Bytes must be reached. Units of 200 bytes and more
// need half the repetitions. Units of code, markup and tables, and prose in arguments,
// need four times both limits. Units without letters (=====) or without spaces
// (base64, hex) need eight times both, and in arguments never count. Blank units need twice Bytes.
type RepetitionConfig struct {
	Enabled     bool `yaml:"enabled"`
	Repetitions int  `yaml:"repetitions"` // minimum number of repetitions
	Bytes       int  `yaml:"bytes"`       // minimum length of all repetitions together
	Unit        int  `yaml:"unit"`        // maximum length of the unit, in bytes
}

// Defaults returns the configuration that applies when none is given.
func Defaults() Config {
	return Config{
		Enabled: true, JSONStream: JSONPass,
		Repetition: RepetitionConfig{Enabled: true, Repetitions: 40, Bytes: 4096, Unit: 2000},
	}
}

// Validate returns all problems as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"destructive", c.Destructive}, {"safe", c.Safe}} {
		for i, p := range list.patterns {
			if _, err := path.Match(p, "x"); err != nil || p == "" {
				problems.Add("%s[%d]: %q is not a pattern", list.key, i, p)
			}
		}
	}
	problems.Check(c.JSONStream != JSONPass && c.JSONStream != JSONHold, "json_stream: %q is none of pass, hold", c.JSONStream)
	r := c.Repetition
	problems.Check(r.Repetitions < 10, "repetition.repetitions: must be at least 10")
	problems.Check(r.Bytes < 512, "repetition.bytes: must be at least 512")
	problems.Check(r.Unit < 1 || r.Unit > 4000, "repetition.unit: must be between 1 and 4000")
	return problems.Err()
}

// The bounds of one judgement. What exceeds them is not validated or repaired.
const (
	maxArguments      = 1 << 20 // bytes of arguments or content that are parsed
	maxTotalArguments = 4 << 20 // bytes of arguments judged in one answer; arguments that are judged twice count twice
	maxDepth          = 96      // nesting of arguments and content
	maxCalls          = 128     // calls of one answer
	maxJoined         = 16      // argument objects joined in one call
	maxUnwraps        = 6       // layers around one value
	maxQuote          = 2000    // bytes of a flaw's quote
	maxProblem        = 1200    // bytes of a flaw's problem

	maxSchema          = 256 << 10 // bytes of one schema
	maxSchemaDepth     = 64        // nesting of one schema
	maxSubschemas      = 2000      // in one schema; compiling takes quadratic time
	maxPattern         = 1000      // bytes of one pattern
	maxCachedSchemas   = 512
	maxCachedBytes     = 8 << 20   // bytes of all cached schemas
	maxToolList        = 256 << 10 // bytes of one cached list of tools
	maxCachedToolLists = 256
	maxCachedTools     = 8 << 20   // bytes of all cached lists of tools
	maxValidationWork  = 200_000   // subschemas applied in one validation, with the values that they list
	maxAnswerWork      = 1_000_000 // the same unit, for all validations and repairs of one answer
	compileWork        = 100       // work of compiling one subschema, in that unit
)

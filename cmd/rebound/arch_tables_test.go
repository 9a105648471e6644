package main

// row is one row of the table of imports. A package uses the row with its path, or else one whose pattern matches; * is one
// folder.
type row struct {
	pkg string
	may []string // patterns of our packages that it may import
}

// imports is the table. Test packages x_test may import anything.
var imports = []row{
	{pkg: "store"},
	{pkg: "store/*", may: []string{"store"}},
	{pkg: "tokenizer"},
	{pkg: "recovery/transcript"},
	{pkg: "recovery/rule"}, // rules as data: classify and inspect compile and run them, configs reads them
	{pkg: "recovery/trajectory", may: []string{"recovery", "recovery/transcript"}},
	{pkg: "recovery", may: []string{"recovery/transcript"}},
	// Never a sibling: what a step needs of another one is an interface of its own.
	{pkg: "recovery/*", may: []string{"recovery", "recovery/transcript", "recovery/trajectory", "recovery/rule", "store", "tokenizer"}},
	{pkg: "recovery/fit", may: []string{"recovery", "recovery/transcript", "recovery/trajectory", "store", "recovery/fit/count"}},
	{pkg: "recovery/fit/count", may: []string{"recovery", "recovery/transcript", "store", "tokenizer"}},
	{pkg: "recovery/inspect/looptest"}, // generators of test data
	{pkg: "recovery/fit/agenttest"},
	{pkg: "recovery/hostiletest"},
	{pkg: "proxy", may: []string{"recovery", "recovery/transcript", "store", "proxy/*"}},
	{pkg: "proxy/*", may: []string{"recovery", "recovery/transcript", "store", "proxy/*"}},
	{pkg: "proxy/upstream", may: []string{"recovery", "recovery/transcript", "proxy/h1", "proxy/coding"}},
	{pkg: "proxy/coding"},
	{pkg: "proxy/redact"},
	{pkg: "proxy/h1"}, // a transport: it knows HTTP and nothing of ours
	{pkg: "proxy/upstreamtest"},
	{pkg: "configs", may: []string{"proxy", "proxy/*", "recovery", "recovery/*", "store", "store/*", "tokenizer"}},
	{pkg: "cmd/mockllm", may: []string{"proxy/upstreamtest"}},
	{pkg: "cmd/rebound", may: []string{anything}},
	{pkg: "cmd/rebound/*", may: []string{anything}},
	{pkg: "e2e", may: []string{anything}},
	{pkg: "e2e/*", may: []string{anything}},
	{pkg: "e2e/bench/*", may: []string{anything}},
}

const anything = "..."

// closed lists packages with restricted importers: configuration is passed on as data, and nothing imports programs.
var closed = []struct {
	pkg, by []string
}{
	{pkg: []string{"cmd", "configs"}, by: []string{"cmd", "e2e"}},
	{pkg: []string{"e2e"}, by: []string{"e2e"}},
	// For tests, and for programs that are a scripted upstream; the gateway itself does not use it.
	{pkg: []string{"proxy/upstreamtest"}, by: []string{"cmd/mockllm", "cmd/rebound/demo", "e2e"}},
	{pkg: []string{"store/storetest"}},
	{pkg: []string{"recovery/inspect/looptest", "recovery/fit/agenttest", "recovery/hostiletest"}},
	{pkg: []string{"recovery/recoverytest"}, by: []string{"e2e"}},
}

// homes lists the packages that may import a third-party library. Their tests may use it too, and test packages x_test
// may use any of them.
var homes = []struct {
	library string
	at      []string // patterns of packages; none: tests only
}{
	{"github.com/labstack/echo/v4", []string{"proxy"}},
	{"github.com/redis/go-redis/v9", []string{"store/redis"}},
	{"github.com/klauspost/compress", []string{"proxy/coding"}},
	{"github.com/andybalholm/brotli", []string{"proxy/coding"}},
	{"github.com/prometheus/client_golang", []string{"proxy/telemetry"}},
	{"go.opentelemetry.io", []string{"proxy/telemetry"}},
	{"github.com/chromedp", nil},
	{"google.golang.org/grpc", nil},
	{"google.golang.org/protobuf", nil},
	{"github.com/goccy/go-yaml", []string{"configs"}},
	{"github.com/pkoukk/tiktoken-go", nil},
	{"github.com/pkoukk/tiktoken-go-loader", nil},
	{"github.com/santhosh-tekuri/jsonschema", []string{"recovery/repair"}},
	{"github.com/tiktoken-go/tokenizer", []string{"tokenizer"}},
	{"github.com/spf13/cobra", []string{"cmd/rebound"}},
	{"github.com/spf13/pflag", nil},
	{"github.com/tidwall/sjson", []string{"recovery/transcript"}},
	{"github.com/tidwall/gjson", []string{"proxy/*", "recovery/*", "recovery/fit/count", "recovery", "proxy", "cmd/rebound", "cmd/rebound/demo", "cmd/rebound/doctor", "cmd/rebound/eventline"}},
	{"mvdan.cc/sh/v3", []string{"recovery/trajectory"}},
	{"go.uber.org/goleak", nil},
	{"github.com/rogpeppe/go-internal", nil},
}

// wireWords are field names that mean a wire format and hardly anything else.
var wireWords = []string{
	"messages", "tool_calls", "tool_call_id", "choices", "delta", "finish_reason", "max_tokens", "max_completion_tokens",
	"max_output_tokens", "stream_options", "include_usage", "response_format", "reasoning_content", "tool_choice",
	"parallel_tool_calls", "prompt_tokens", "completion_tokens", "continue_final_message",
	"content_block", "partial_json", "stop_reason", "tool_use_id", "cache_creation_input_tokens",
	"function_call_output", "custom_tool_call", "input_text", "output_text", "input_image", "encrypted_content", "item_reference",
	"previous_response_id", "compaction", "instructions", "output_index", "item_id", "summary_text", "incomplete_details", "input_tokens_details",
}

// wireReaders lists what may use those names; the reason tells the exceptions.
var wireReaders = map[string]string{
	"recovery/transcript":                  "the reader of requests",
	"proxy/stream":                         "the reader and writer of answers",
	"proxy/upstreamtest":                   "the other side of the wire",
	"e2e":                                  "real clients of the gateway",
	"recovery/inspect/looptest":            "generated requests of agents, for tests",
	"recovery/hostiletest":                 "generated requests of attackers, for tests",
	"recovery/fit/agenttest":               "generated sessions of agents, for tests",
	"cmd/rebound/demo":                     "a client of the gateway, with requests of its own",
	"cmd/rebound/doctor":                   "a client of providers, with requests of its own",
	"recovery/classify":                    "upstreams' error texts name fields: they are phrases of the table here",
	"recovery/strategy/adapt_parameter.go": "names of refused parameters, as data: which of them may be renamed or dropped",
	"recovery/strategy/conform_history.go": "upstreams' error texts name fields",
	"recovery/strategy/drop_reasoning.go":  "upstreams' error texts name fields",
	"proxy/restricted.go":                  "fields by which a request chooses what it goes on from, which some keys may not",
	"proxy/owners.go":                      "fields by which a request names what was made before, in any letters",
	"recovery/edit.go":                     "names of refused fields, as data: which of them may be dropped",
	"recovery/target.go":                   "the value of a setting, which is called as in vLLM's documentation",
	"recovery/failure.go":                  "the name of a fact, as rebound classify prints it",
}

// variables lists package-level variables that TestNoPackageState would report, with the reason why they are no state.
var variables = map[string]string{
	"cmd/rebound.version":                "set by the linker, read only",
	"store/redis.silenceOnce":            "go-redis has one logger for the process; it is silenced once",
	"store/storetest.ctx":                "context.Background(), for tests",
	"recovery/session.encoding":          "an immutable base32.Encoding",
	"proxy/upstreamtest.bombFiller":      "made once, then read only",
	"proxy/upstreamtest.okStep":          "a step that is read only",
	"proxy/upstreamtest.noStep":          "a step that is read only",
	"cmd/rebound/app.builtIn":            "those rules, compiled at their first use, once",
	"cmd/rebound/app.vocabulary":         "the words of those rules, collected at their first use, once",
	"tokenizer.runeClasses":              "a table, made once, then read only",
	"tokenizer.o200kCore":                "a vocabulary, which is loaded at its first use, once",
	"tokenizer.cl100kCore":               "a vocabulary, which is loaded at its first use, once",
	"tokenizer.o200k":                    "an encoding; its vocabulary is loaded once",
	"tokenizer.cl100k":                   "an encoding; its vocabulary is loaded once",
	"tokenizer.o200kHarmony":             "an encoding; its vocabulary is loaded once",
	"recovery/classify.transportRules":   "a table, made once, then read only",
	"recovery/trajectory.deedsOfProgram": "a table, made once, then read only",
	"recovery/trajectory.traits":         "a table, made once, then read only",
	"recovery/trajectory.holding":        "a table, made once, then read only",
}

package configs

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/telemetry"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/classify"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/recovery/repair"
	"github.com/rebound-llm/rebound/recovery/route"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/redis"
)

const (
	defaultName = "default"
	openAI      = "https://api.openai.com/v1"

	anthropicName = "anthropic"
	anthropic     = "https://api.anthropic.com"
)

// The environment variables that override the file.
const (
	EnvListen     = "REBOUND_LISTEN"
	EnvUpstream   = "OPENAI_UPSTREAM_URL"
	EnvAnthropic  = "ANTHROPIC_UPSTREAM_URL"
	EnvRedis      = "REBOUND_REDIS_URL"
	EnvAdminToken = "REBOUND_ADMIN_TOKEN"
	EnvLogLevel   = "REBOUND_LOG_LEVEL"

	// OpenTelemetry's own names.
	EnvOTLP         = "OTEL_EXPORTER_OTLP_ENDPOINT"
	EnvOTLPProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL"
)

// Config is the whole configuration of the gateway. The keys of Proxy stand at the top level of the file. A loaded Config
// is complete (defaults filled in, secrets read, paths resolved), valid and immutable, so it may be shared. Every way to
// print it leaves secrets out, see [Config.Redacted].
type Config struct {
	Proxy           proxy.Config               `yaml:",inline"`
	Upstreams       map[string]upstream.Config `yaml:"upstreams"`
	DefaultUpstream string                     `yaml:"default_upstream"` // always one of Upstreams
	Models          map[string]route.Model     `yaml:"models"`
	Recovery        recovery.Config            `yaml:"recovery"`
	Breaker         breaker.Config             `yaml:"breaker"`
	Learn           learn.Config               `yaml:"learn"`
	Classify        classify.Config            `yaml:"classify"`
	Inspect         inspect.Config             `yaml:"inspect"`
	Strategies      annotate.Config            `yaml:"strategies"`
	Planner         plan.Config                `yaml:"planner"`
	Fit             fit.Config                 `yaml:"fit"`
	Repair          repair.Config              `yaml:"repair"`
	Stream          stream.Config              `yaml:"stream"`
	Store           StoreConfig                `yaml:"store"`
	Log             telemetry.Config           `yaml:"log"`
	OTLP            telemetry.OTLP             `yaml:"otlp"`
	Recording       recording.Config           `yaml:"recording"`

	origin origin
}

// StoreConfig says where state is kept: in memory, unless there is a Redis URL.
type StoreConfig struct {
	Redis redis.Config `yaml:"redis"`
	// Content says whether content of conversations may be in Redis: see ContentSealed and ContentOff.
	Content string `yaml:"content"`
}

const (
	// ContentSealed allows content that later requests need, encrypted with a key from the client's credential.
	ContentSealed = "sealed"
	// ContentOff allows none.
	ContentOff = "off"
)

// origin records what a Config was read from, for the watcher and for Replaceable.
type origin struct {
	path  string // empty without a file
	empty bool   // the file has no content
	files []source

	auth, upstreams bool // the file has entries in these sections
}

// Env looks up an environment variable, as os.LookupEnv does.
type Env = func(name string) (value string, ok bool)

// Defaults returns the configuration that applies without file and environment.
func Defaults() Config {
	u := upstream.Defaults()
	u.URL, u.Passthrough = openAI, true
	m := upstream.Defaults()
	m.URL, m.Format, m.Passthrough = anthropic, upstream.FormatAnthropic, true
	return Config{
		Proxy:           proxy.Defaults(),
		Upstreams:       map[string]upstream.Config{defaultName: u, anthropicName: m},
		DefaultUpstream: defaultName,
		Recovery:        recovery.Defaults(),
		Breaker:         breaker.Defaults(),
		Learn:           learn.Defaults(),
		Classify:        classify.Defaults(),
		Inspect:         inspect.Defaults(),
		Strategies:      annotate.Defaults(),
		Planner:         plan.Defaults(),
		Fit:             fit.Defaults(),
		Repair:          repair.Defaults(),
		Stream:          stream.Defaults(),
		Store:           StoreConfig{Redis: redis.Defaults(), Content: ContentSealed},
		Log:             telemetry.Defaults(),
		OTLP:            telemetry.OTLPDefaults(),
		Recording:       recording.Defaults(),
	}
}

//go:embed default.yaml
var reference string

// Reference returns default.yaml, which documents every key with its default.
func Reference() string { return reference }

// Listen returns the address to listen on.
func (c *Config) Listen() string { return c.Proxy.Listen }

// Path returns the file of the configuration, empty without one.
func (c *Config) Path() string { return c.origin.path }

// Default returns the configuration of a gateway without a file. The error is an [Errors] about the
// environment.
func Default(env Env) (*Config, error) {
	l, err := read("", nil, env, false)
	return l.config, err
}

// Load reads a configuration file. The error is an [Errors], or, when the file
// itself cannot be read, wraps that reason (fs.ErrNotExist and others).
func Load(path string, env Env) (*Config, error) {
	l, err := load(path, env, false)
	return l.config, err
}

// Check is Load with warnings also beside problems. If secretless is set, secrets and certificates that the file
// names may be missing on this machine.
func Check(path string, env Env, secretless bool) (c *Config, warnings []string, err error) {
	l, err := load(path, env, secretless)
	return l.config, l.warnings, err
}

// Warnings returns a sentence for each setting that is valid but probably not intended.
func (c *Config) Warnings() []string {
	out := c.Proxy.Warnings()
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if h := c.Upstreams[name].Hint(); h != "" {
			out = append(out, fmt.Sprintf("upstreams.%s.url: %s", name, h))
		}
	}
	return out
}

// Parse is Load for text in memory. Messages use name as the file's name, and relative paths start in its folder. Parse
// reads files and variables that the text names. The error is an [Errors]; no text makes it panic.
func Parse(name string, data []byte, env Env) (*Config, error) {
	l, err := read(name, data, env, false)
	return l.config, err
}

// loaded is the result of reading a configuration. If that fails, config is nil and the rest is as complete as
// possible.
type loaded struct {
	config   *Config
	files    []source // that were read
	warnings []string // about keys without a problem
}

func load(path string, env Env, secretless bool) (loaded, error) {
	if path == "" {
		return read("", nil, env, secretless)
	}
	data, err := readBounded(path, maxBytes+1)
	own := newSource(path, 0, data, err)
	if err != nil {
		return loaded{files: []source{own}}, fmt.Errorf("reading configuration: %w", err)
	}
	l, err := read(path, data, env, secretless)
	l.files = append([]source{own}, l.files...)
	if err == nil {
		l.config.origin.path, l.config.origin.empty, l.config.origin.files = path, len(bytes.TrimSpace(data)) == 0, l.files
	}
	return l, err
}

// readBounded reads a file of at most limit bytes that is no folder.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, errors.Join(err, f.Close())
}

// read turns text into a valid Config.
func read(name string, data []byte, env Env, secretless bool) (loaded, error) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	r, c := newReader(name), Defaults()
	r.secretless = secretless
	if name != "" && !r.readInto(reflect.ValueOf(&c).Elem(), data) {
		return loaded{}, sortProblems(r.problems)
	}
	r.chooseDefault(&c)
	r.applyEnv(&c, env)
	r.fill(&c)
	r.secrets(&c, env)
	r.validate(&c)
	l := loaded{files: r.sources, warnings: slices.DeleteFunc(c.Warnings(), func(w string) bool {
		key, _, _ := strings.Cut(w, ":")
		return r.failed(key) || r.unreadable(key)
	})}
	if len(r.problems) > 0 {
		return l, sortProblems(r.problems)
	}
	c.origin.auth, c.origin.upstreams = r.gives("auth"), r.gives("upstreams")
	l.config = &c
	return l, nil
}

// chooseDefault sets the upstream for models that are not configured.
func (r *reader) chooseDefault(c *Config) {
	if len(c.Upstreams) == 0 {
		c.Upstreams = Defaults().Upstreams
	}
	if _, ok := c.Upstreams[c.DefaultUpstream]; ok {
		return
	}
	declared := slices.Sorted(maps.Keys(c.Upstreams))
	switch {
	case r.has("default_upstream"):
		r.reportUpstream("default_upstream", c.DefaultUpstream, declared, "name one of ")
	case len(declared) == 1:
		c.DefaultUpstream = declared[0]
	default:
		at := r.find("upstreams")
		r.reportAt(at, false, "default_upstream", "is needed, because no upstream is called default: name one of %s", list(declared))
	}
}

// reportUpstream reports a name that no upstream has, with the most similar one, or else the advice and all names.
func (r *reader) reportUpstream(key, name string, declared []string, advice string) {
	advice += list(declared)
	if s := nearest(name, declared); s != "" {
		advice = "did you mean " + s + "?"
	}
	r.report(key, "no upstream is called %s: %s", quote(name), advice)
}

// DefaultOf returns the upstream of an API for models that are not configured: the default upstream if it has that API,
// else the first by name that has, "" if there is none.
func (c *Config) DefaultOf(api transcript.API) string {
	if u, ok := c.Upstreams[c.DefaultUpstream]; ok && u.API() == api {
		return c.DefaultUpstream
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if c.Upstreams[name].API() == api {
			return name
		}
	}
	return ""
}

// applyEnv overrides settings from the environment.
func (r *reader) applyEnv(c *Config, env Env) {
	set := func(name, key string, to *string) bool {
		value, ok := env(name)
		if !ok || value == "" {
			return false
		}
		*to = value
		r.fromEnv[key] = name
		return true
	}
	set(EnvListen, "listen", &c.Proxy.Listen)
	set(EnvLogLevel, "log.level", &c.Log.Level)
	set(EnvOTLP, "otlp.endpoint", &c.OTLP.Endpoint)
	set(EnvOTLPProtocol, "otlp.protocol", &c.OTLP.Protocol)
	if d := &c.Store.Redis; set(EnvRedis, "store.redis.url", &d.URL) {
		// The URL is the server's complete address.
		d.URLEnv, d.Addresses, d.MasterName, d.Database, d.TLS = EnvRedis, nil, "", 0, false
	}
	if u, ok := c.Upstreams[c.DefaultUpstream]; ok && set(EnvUpstream, childKey("upstreams", c.DefaultUpstream)+".url", &u.URL) {
		c.Upstreams[c.DefaultUpstream] = u
		if !r.has("upstreams") { // naming one upstream in the environment replaces the default ones
			delete(c.Upstreams, anthropicName)
		}
	}
	name := cmp.Or(c.DefaultOf(transcript.Anthropic), anthropicName)
	u, ok := c.Upstreams[name]
	if !ok {
		u = Defaults().Upstreams[anthropicName]
	}
	if (!ok || u.API() == transcript.Anthropic) && set(EnvAnthropic, childKey("upstreams", name)+".url", &u.URL) {
		c.Upstreams[name] = u
	}
	var token string
	if set(EnvAdminToken, "auth.admin_env", &token) {
		c.Proxy.Auth.AdminEnv, c.Proxy.Auth.AdminFile = EnvAdminToken, ""
	}
}

// fill sets defaults that depend on several keys.
func (r *reader) fill(c *Config) {
	for _, name := range [...]string{c.DefaultUpstream, c.DefaultOf(transcript.Anthropic)} {
		at := childKey("upstreams", name)
		if u, ok := c.Upstreams[name]; ok && len(u.Keys) == 0 && !r.failed(at+".keys") && !r.has(at+".passthrough") {
			u.Passthrough = true
			c.Upstreams[name] = u
		}
	}
	for name, m := range c.Models {
		if m.FallbackFor == nil {
			m.FallbackFor = route.DefaultFallbackFor()
			c.Models[name] = m
		}
	}
}

// list joins at most 20 names for a message.
func list(names []string) string {
	if len(names) > 20 {
		names = append(slices.Clone(names[:20]), "…")
	}
	return strings.Join(names, ", ")
}

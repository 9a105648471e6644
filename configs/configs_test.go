package configs

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/rebound-llm/rebound/proxy"
	"github.com/rebound-llm/rebound/proxy/recording"
	"github.com/rebound-llm/rebound/proxy/stream"
	"github.com/rebound-llm/rebound/proxy/telemetry"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/annotate"
	"github.com/rebound-llm/rebound/recovery/breaker"
	"github.com/rebound-llm/rebound/recovery/fit"
	"github.com/rebound-llm/rebound/recovery/inspect"
	"github.com/rebound-llm/rebound/recovery/learn"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/recovery/repair"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store/redis"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// compare compares a text with a golden file.
func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it)\n%s", golden, diff.Diff("want", want, "got", []byte(got)))
	}
}

// environment returns a lookup in NAME=value pairs.
func environment(pairs ...string) Env {
	m := map[string]string{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		m[name] = value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func mustParse(t *testing.T, text string, env ...string) *Config {
	t.Helper()
	c, err := Parse("test.yaml", []byte(text), environment(env...))
	if err != nil {
		t.Fatalf("Parse:\n%v\nof\n%s", err, text)
	}
	return c
}

// same compares two configurations, but not their origins.
func same(t *testing.T, got, want Config) {
	t.Helper()
	got.origin, want.origin = origin{}, origin{}
	if !reflect.DeepEqual(got, want) {
		type bare Config // without String
		t.Errorf("got  %+v\nwant %+v", bare(got), bare(want))
	}
}

func TestReferenceIsTheDefaults(t *testing.T) {
	c := mustParse(t, Reference())
	same(t, *c, Defaults())

	u := upstream.Defaults()
	u.URL, u.Passthrough = openAI, true
	a := upstream.Defaults()
	a.URL, a.Format, a.Passthrough = anthropic, upstream.FormatAnthropic, true
	same(t, *c, Config{
		Proxy: proxy.Defaults(), Upstreams: map[string]upstream.Config{"default": u, "anthropic": a}, DefaultUpstream: "default",
		Recovery: recovery.Defaults(), Breaker: breaker.Defaults(), Learn: learn.Defaults(), Stream: stream.Defaults(),
		Inspect: inspect.Defaults(), Strategies: annotate.Defaults(), Planner: plan.Defaults(), Fit: fit.Defaults(), Repair: repair.Defaults(),
		Store: StoreConfig{Redis: redis.Defaults(), Content: ContentSealed}, Log: telemetry.Defaults(), OTLP: telemetry.OTLPDefaults(), Recording: recording.Defaults(),
	})

	d, err := Default(environment())
	if err != nil {
		t.Fatal(err)
	}
	same(t, *d, Defaults())
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "\ufeff", "{}", "models:\nupstreams:\n", "listen: 127.0.0.1:8080\r\n"} {
		same(t, *mustParse(t, text), Defaults())
	}
}

// optional matches the # before settings; explanations have one space after it.
var optional = regexp.MustCompile(`(?m)^([ \t]*)#([^ #\n]|  )`)

// uncommented returns the reference with its optional settings enabled.
func uncommented(t *testing.T) string {
	t.Helper()
	text := optional.ReplaceAllString(Reference(), "$1$2")
	for _, exclusive := range []string{"    passthrough: true\n", "  admin_file: .*\n", "  key_file: recording.*\n",
		"    url: redis:.*\n", "    url_env: .*\n", "    (sentinel_)?password_file: .*\n", "    secret_file: .*\n"} {
		before := text
		if text = regexp.MustCompile("(?m)^"+exclusive).ReplaceAllString(text, ""); text == before {
			t.Fatalf("the reference has no line %q", exclusive)
		}
	}
	return text
}

func TestReferenceHasEveryKey(t *testing.T) {
	text := optional.ReplaceAllString(Reference(), "$1$2")
	r := newReader("default.yaml")
	n, _, err := r.parseText([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	var walk func(n ast.Node, key string, v reflect.Type)
	walk = func(n ast.Node, key string, v reflect.Type) {
		have[key] = true
		switch {
		case v.Kind() == reflect.Slice:
			for _, item := range n.(*ast.SequenceNode).Values {
				walk(item, key+"[]", v.Elem())
			}
		case v.Kind() == reflect.Map:
			for _, p := range r.pairs(n) {
				walk(p.value, key+".NAME", v.Elem())
			}
		case v.Kind() == reflect.Struct:
			for _, p := range r.pairs(n) {
				for _, f := range fields(v) {
					if f.name == p.key {
						walk(p.value, joinKey(key, p.key), f.typ)
					}
				}
			}
		}
	}
	walk(n, "", reflect.TypeFor[Config]())
	schema(reflect.TypeFor[Config](), "", func(key, _ string, _ reflect.Type) {
		if !have[key] {
			t.Errorf("default.yaml does not have %s", key)
		}
	})
}

func TestReferenceOptionalSettingsAreValid(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	for _, name := range []string{"build.key", "spare.key", "admin.key"} {
		write(t, filepath.Join(dir, name), "secret-of-"+name+"\n")
	}
	path := filepath.Join(dir, "rebound.yaml")
	write(t, path, uncommented(t))
	c, err := Load(path, everything)
	if err != nil {
		t.Fatal(err.(Errors).Detail())
	}
	if got := c.Upstreams["default"].Keys[1].Value; got != "secret-of-spare.key" {
		t.Errorf("key %q", got)
	}
}

// everything is an environment in which every variable is set, except overrides.
func everything(name string) (string, bool) {
	if strings.HasPrefix(name, "REBOUND_") || strings.HasSuffix(name, "_UPSTREAM_URL") || strings.HasPrefix(name, "OTEL_") {
		return "", false
	}
	return "value-of-" + name, true
}

func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if _, err := Load(path, everything); err != nil {
				t.Error(err)
			}
			// Without its variables an example may only fail because they are not set.
			if _, err := Load(path, environment()); err != nil {
				for _, p := range err.(Errors) {
					if !strings.Contains(p.Message, "is not set") {
						t.Error(p)
					}
				}
			}
			text, _ := os.ReadFile(path)
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("does not begin with what it is for")
			}
		})
	}
}

func TestUpstreamDefaults(t *testing.T) {
	tests := []struct {
		name, text string
		env        []string
		def        string
		check      func(map[string]upstream.Config) bool
	}{
		{"a partial default upstream is still OpenAI and takes the client's credential", "upstreams: {default: {prefill: assistant}}", nil, "default",
			func(u map[string]upstream.Config) bool {
				d := u["default"]
				return d.URL == openAI && d.Passthrough && d.Prefill == "assistant" && d.MaxIdleConns == 1024
			}},
		{"keys take the place of the client's credential", "upstreams: {default: {keys: [{name: a, env: A}]}}", []string{"A=k"}, "default",
			func(u map[string]upstream.Config) bool {
				d := u["default"]
				return d.URL == openAI && !d.Passthrough && d.Keys[0].Value == "k" && d.Keys[0].Weight == 1
			}},
		{"passthrough may be refused", "upstreams: {default: {passthrough: false}}", nil, "default",
			func(u map[string]upstream.Config) bool { return !u["default"].Passthrough }},
		{"the only upstream is the default one", "upstreams: {a: {url: http://a}}", nil, "a",
			func(u map[string]upstream.Config) bool {
				return len(u) == 1 && u["a"].Passthrough && u["a"].Credential() == "Authorization"
			}},
		{"other upstreams do not get the client's credential", "{upstreams: {a: {url: http://a}, b: {url: http://b}}, default_upstream: b}", nil, "b",
			func(u map[string]upstream.Config) bool {
				return len(u) == 2 && !u["a"].Passthrough && u["b"].Passthrough
			}},
		{"the variable is the default upstream's", "{upstreams: {a: {url: http://a}, b: {url: http://b}}, default_upstream: b}",
			[]string{"OPENAI_UPSTREAM_URL=http://c"}, "b",
			func(u map[string]upstream.Config) bool { return u["a"].URL == "http://a" && u["b"].URL == "http://c" }},
		{"without any, Anthropic serves its format", "", nil, "default",
			func(u map[string]upstream.Config) bool {
				a := u["anthropic"]
				return len(u) == 2 && a.URL == anthropic && a.Passthrough && a.API() == transcript.Anthropic && a.Credential() == "x-api-key"
			}},
		{"who names an upstream names all", "", []string{"OPENAI_UPSTREAM_URL=http://c"}, "default",
			func(u map[string]upstream.Config) bool { return len(u) == 1 && u["default"].URL == "http://c" }},
		{"another one of Anthropic's format", "", []string{"OPENAI_UPSTREAM_URL=http://c", "ANTHROPIC_UPSTREAM_URL=http://d"}, "default",
			func(u map[string]upstream.Config) bool {
				return len(u) == 2 && u["anthropic"].URL == "http://d" && u["anthropic"].API() == transcript.Anthropic && u["anthropic"].Passthrough
			}},
		{"the variable is the file's upstream of that format", "{upstreams: {a: {url: http://a}, b: {url: http://b, format: anthropic}}, default_upstream: a}",
			[]string{"ANTHROPIC_UPSTREAM_URL=http://d"}, "a", func(u map[string]upstream.Config) bool {
				return len(u) == 2 && u["b"].URL == "http://d" && u["b"].Passthrough && u["a"].URL == "http://a"
			}},
		{"an empty variable is none", "", []string{"OPENAI_UPSTREAM_URL="}, "default",
			func(u map[string]upstream.Config) bool { return u["default"].URL == openAI }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := mustParse(t, tt.text, tt.env...)
			if c.DefaultUpstream != tt.def || !tt.check(c.Upstreams) {
				t.Errorf("default %q of %v", c.DefaultUpstream, c)
			}
		})
	}
}

func TestEnvironmentWins(t *testing.T) {
	env := []string{"REBOUND_LISTEN=[::1]:1", "OPENAI_UPSTREAM_URL=http://u/v1", "REBOUND_REDIS_URL=redis://h:6379", "REBOUND_ADMIN_TOKEN=adm\n",
		"REBOUND_LOG_LEVEL=debug"}
	for name, text := range map[string]string{"without file": "", "with file": `
listen: 127.0.0.1:2
auth: {admin_env: NOT_SET}
upstreams: {default: {url: http://file}}
store: {redis: {url: "redis://file:6379"}}
log: {level: error, format: text}
`} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, text, env...)
			got := []string{c.Listen(), c.Upstreams["default"].URL, c.Store.Redis.URL, c.Proxy.Auth.AdminToken, c.Log.Level, c.Proxy.Auth.AdminEnv}
			want := []string{"[::1]:1", "http://u/v1", "redis://h:6379", "adm", "debug", "REBOUND_ADMIN_TOKEN"}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	_, err := Parse("x.yaml", []byte("listen: 127.0.0.1:1"), environment("REBOUND_LISTEN=nonsense", "REBOUND_LOG_LEVEL=loud"))
	want := "listen: \"nonsense\" is not host:port, like 127.0.0.1:8080 (set by REBOUND_LISTEN)\nlog.level: \"loud\" is none of debug, info, warn, error (set by REBOUND_LOG_LEVEL)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestModelDefaults(t *testing.T) {
	c := mustParse(t, `
models:
  a: {targets: [{upstream: default}]}
  b: {targets: [{upstream: default, rank: 0, weight: 0.5}, {upstream: default, model: x, rank: 0}], fallback_for: []}
`)
	a, b := c.Models["a"], c.Models["b"]
	if len(a.FallbackFor) != 1 || a.Targets[0].Weight != 1 || a.Targets[0].Rank != nil {
		t.Errorf("a: %+v", a)
	}
	if b.FallbackFor == nil || len(b.FallbackFor) != 0 || b.Targets[0].Weight != 0.5 || *b.Targets[1].Rank != 0 {
		t.Errorf("b: %+v", b)
	}
}

func TestAliasesAndMerges(t *testing.T) {
	c := mustParse(t, `
upstreams:
  default: &base
    url: http://a
    headers: &h {X-A: "1"}
    prefill: prefix
  other:
    <<: *base
    url: http://b
  third:
    <<: [*base]
    headers: *h
`)
	o, th := c.Upstreams["other"], c.Upstreams["third"]
	if o.URL != "http://b" || o.Headers["X-A"] != "1" || o.Prefill != "prefix" || th.URL != "http://a" || th.Headers["X-A"] != "1" {
		t.Errorf("%+v %+v", o, th)
	}
}

func TestTextIsKeptAsWritten(t *testing.T) {
	c := mustParse(t, "upstreams: {default: {query: {api-version: 2024-10-21, v: 1.10, n: 007, b: True}}}")
	if got := c.Upstreams["default"].Query; !reflect.DeepEqual(got, map[string]string{"api-version": "2024-10-21", "v": "1.10", "n": "007", "b": "True"}) {
		t.Errorf("%q", got)
	}
}

func TestLoadOfNoFile(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), environment())
	var e Errors
	if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &e) {
		t.Errorf("%v", err)
	}
	if _, err := Load(t.TempDir(), environment()); err == nil {
		t.Error("a folder was read")
	}
}

func TestPathsStartInTheFolderOfTheFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "s"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "s", "key"), "abc\r\n")
	path := filepath.Join(dir, "c.yaml")
	write(t, path, "upstreams: {default: {keys: [{name: a, file: s/key}]}}")
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k := c.Upstreams["default"].Keys[0]; k.Value != "abc" || k.File != filepath.Join(dir, "s", "key") {
		t.Errorf("%+v", k)
	}
	if c.Path() != path {
		t.Errorf("path %q", c.Path())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Limits that are valid but do not do what one may expect.
func TestLimitsWarn(t *testing.T) {
	c, err := Parse("x.yaml", []byte(`
auth:
  keys:
    - {name: a, env: A, limits: {concurrent: 9, tokens_per_minute: 500, tokens_per_day: 100}}
    - {name: b, env: B, limits: {spending_per_day: 1}}
limits: {concurrent: 1, total: {concurrent: 8}}
prices: {m: {input: 1}}
`), func(name string) (string, bool) { return "gateway-key-" + name, len(name) == 1 })
	if err != nil {
		t.Fatal(err)
	}
	got := c.Warnings()
	for i, want := range []string{
		"auth.keys[0].limits.concurrent: is never reached", "auth.keys[0].limits.tokens_per_minute: is never reached",
		"limits.concurrent: is less than the 2 keys", `prices: have no "*"`,
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("warning %d: %q, want %q", i, got, want)
		}
	}
	if len(got) != 4 {
		t.Errorf("%q", got)
	}
}

package upstream

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Config is one upstream: its address, its format and its credentials.
type Config struct {
	// Format is its API format: openai (Chat Completions, Responses and related paths) or anthropic
	// (the Messages API). Empty means openai.
	Format string `yaml:"format"`
	// URL is the base URL, up to but without "/chat/completions"; for the Messages API without
	// "/v1/messages" or "/messages". "{model}" in it is replaced by the target's model, as Azure's
	// deployments need.
	URL string `yaml:"url"`
	// AuthHeader is the header with the credential: "Authorization" sends "Bearer KEY", any other
	// header the bare key (Azure: api-key). Empty means Authorization, or for the Messages API
	// x-api-key.
	AuthHeader string `yaml:"auth_header"`
	// Passthrough sends the client's own credential. Without it and without keys, no credential is
	// sent (local servers).
	Passthrough bool              `yaml:"passthrough"`
	Keys        []Key             `yaml:"keys"`
	Headers     map[string]string `yaml:"headers"`
	Query       map[string]string `yaml:"query"`
	// ForwardHeaders are client headers that this upstream gets in addition to those known to be
	// harmless. With passthrough it gets all.
	ForwardHeaders []string `yaml:"forward_headers"`

	// Proxy is the URL of a forward proxy. Empty means HTTPS_PROXY, HTTP_PROXY and NO_PROXY for public
	// hosts, as in SDKs; "env" means these for private addresses, too; "none" means no proxy.
	Proxy string `yaml:"proxy"`
	// HTTP2 uses HTTP/2 if the server offers it, and for an http URL from the start. It costs more CPU
	// time than HTTP/1.1.
	HTTP2      bool   `yaml:"http2"`
	CAFile     string `yaml:"ca_file"`     // PEM, in addition to the system's
	ClientCert string `yaml:"client_cert"` // PEM files
	ClientKey  string `yaml:"client_key"`

	// Disabled stops all requests except those that only this upstream can serve. Mode is the highest
	// mode for requests that go to this upstream first; empty means recovery.mode.
	Disabled bool          `yaml:"disabled"`
	Mode     recovery.Mode `yaml:"mode"`

	Prefill recovery.Prefill `yaml:"prefill"`
	// Profile says whether slow first tokens are normal: local or hosted; auto means local for private
	// and loopback addresses.
	Profile string `yaml:"profile"`

	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	MaxIdleConns   int           `yaml:"max_idle_conns"`

	// DialContext replaces the TCP dialer of the h1 client, for tests.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error) `yaml:"-"`
}

// Key is one credential of an upstream. The configuration names its source; the loader fills Value,
// which is never printed.
type Key struct {
	Name string `yaml:"name"`
	Env  string `yaml:"env"`
	File string `yaml:"file"`
	// Command prints the key: a program and its arguments, without a shell. It runs when the key is
	// first needed, after the upstream has answered 401, and before TTL has passed (0: no expiry).
	Command []string      `yaml:"command"`
	TTL     time.Duration `yaml:"ttl"`
	Weight  float64       `yaml:"weight"`
	Value   string        `yaml:"-"`
}

// String names the key without its value.
func (k Key) String() string { return k.Name }

// Defaults returns the default configuration of an upstream.
func Defaults() Config {
	return Config{
		Format: FormatOpenAI, Prefill: recovery.PrefillAuto, Profile: "auto",
		ConnectTimeout: 10 * time.Second, MaxIdleConns: 1024,
	}
}

// Validate reports everything that is wrong, as one joined error; each message begins with the key.
func (c Config) Validate() error {
	var problems recovery.Problems
	if _, ok := recovery.ParseMode(string(c.Mode)); c.Mode != "" && !ok {
		problems.Add("mode: %q is none of act, annotate, observe, off", c.Mode)
	}
	if c.URL == "" {
		problems.Add("url: is needed, like https://api.openai.com/v1")
	} else if u, err := url.Parse(strings.ReplaceAll(c.URL, "{model}", "model")); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		shown, _, _ := strings.Cut(c.URL, "?") // the query may contain a credential
		problems.Add("url: %q is not an http or https URL, like https://api.openai.com/v1", shown)
	} else if u.User != nil {
		problems.Add("url: must not contain a credential; use keys")
	} else if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		problems.Add("url: must end before the question mark or #; parameters belong under query, credentials under keys")
	} else if !SafePath(u.EscapedPath() + "/") {
		problems.Add("url: must not contain . or .. as a part of its path")
	}
	problems.Check(c.Format != "" && c.Format != apis[c.API()].format, "format: %q is none of %s, %s", c.Format, FormatOpenAI, FormatAnthropic)
	problems.Check(http.CanonicalHeaderKey(c.AuthHeader) == "Host", "auth_header: must be a header name")
	problems.Check(c.Passthrough && len(c.Keys) > 0, "passthrough: an upstream with keys of its own cannot also take the client's")
	switch c.Prefill {
	case recovery.PrefillAuto, recovery.PrefillNone, recovery.PrefillAssistant, recovery.PrefillPrefix, recovery.PrefillContinue:
	default:
		problems.Add("prefill: %q is none of auto, none, assistant, prefix, continue_final_message", c.Prefill)
	}
	switch c.Profile {
	case "auto", "hosted", "local":
	default:
		problems.Add("profile: %q is none of auto, hosted, local", c.Profile)
	}
	if c.Proxy != "" && c.Proxy != "env" && c.Proxy != "none" {
		if u, err := url.Parse(c.Proxy); err != nil || u.Host == "" {
			problems.Add("proxy: is neither env, none nor a URL")
		}
	}
	problems.Check((c.ClientCert == "") != (c.ClientKey == ""), "client_cert: needs client_key, and client_key needs client_cert")
	problems.Check(c.ConnectTimeout <= 0, "connect_timeout: must be positive")
	problems.Check(c.MaxIdleConns < 1, "max_idle_conns: must be at least 1")
	names := map[string]bool{}
	for i, k := range c.Keys {
		if k.Name == "" {
			problems.Add("keys[%d].name: is needed; it is the label in logs and metrics", i)
		} else if names[k.Name] {
			problems.Add("keys[%d].name: %q is used twice", i, k.Name)
		}
		names[k.Name] = true
		if n := len(k.Command); n > 0 && (k.Env != "" || k.File != "") || n == 0 && (k.Env == "") == (k.File == "") {
			problems.Add("keys[%d]: needs one of env, file and command", i)
		}
		problems.Check(len(k.Command) > 0 && k.Command[0] == "" || k.TTL < 0 || k.TTL > 0 && len(k.Command) == 0, "keys[%d].command: must begin with a program, and ttl be the lifetime of what it prints", i)
		problems.Check(k.Weight < 0, "keys[%d].weight: must not be negative", i)
	}
	return problems.Err()
}

// The formats of upstreams.
const (
	FormatOpenAI    = "openai"
	FormatAnthropic = "anthropic"
)

// apis lists what the servers of each API expect besides a body.
var apis = [transcript.APICount]struct {
	format     string // its name in the configuration
	credential string // the header with the credential
	end        string // of the base URL, which clients add to what users give them; empty if users give the whole URL
	header     string // a header without which servers refuse requests, and its value; empty for none
	value      string
}{
	transcript.OpenAI:    {format: FormatOpenAI, credential: "Authorization"},
	transcript.Anthropic: {FormatAnthropic, "x-api-key", "/v1", "Anthropic-Version", "2023-06-01"},
}

// API returns the API that it has, by its format.
func (c Config) API() transcript.API {
	for api := range transcript.APICount {
		if apis[api].format == c.Format {
			return api
		}
	}
	return transcript.OpenAI
}

// Credential returns the name of the header with the credential.
func (c Config) Credential() string { return cmp.Or(c.AuthHeader, apis[c.API()].credential) }

// base returns the URL to which paths like /chat/completions and /messages are appended.
func (c Config) base() string {
	base, end := strings.TrimRight(c.URL, "/"), apis[c.API()].end
	return strings.TrimSuffix(base, end) + end
}

// Local reports whether slow first tokens are normal, according to the profile. For auto it returns
// private.
func (c Config) Local() bool {
	if c.Profile != "auto" {
		return c.Profile == "local"
	}
	return c.private()
}

// ForwardProxy returns the proxy between the gateway and the upstream, or nil.
func (c Config) ForwardProxy() *url.URL {
	switch c.Proxy {
	case "none":
		return nil
	case "", "env":
		if c.DialContext != nil || c.Proxy == "" && c.private() {
			return nil
		}
		at, err := url.Parse(strings.ReplaceAll(c.URL, "{model}", "model"))
		if err != nil {
			return nil
		}
		u, err := http.ProxyFromEnvironment(&http.Request{URL: at})
		if err != nil {
			return nil
		}
		return u
	}
	u, err := url.Parse(c.Proxy)
	if err != nil {
		return nil
	}
	return u
}

// privateNames are the ends of names that are used in private networks only (RFC 6762, RFC 8375, ICANN's .internal, and
// .lan of home routers).
var privateNames = []string{".local", ".home.arpa", ".internal", ".lan", ".localhost"}

// private reports whether the URL's host is one of the operator's own: a loopback, private, shared (RFC 6598, as in VPNs),
// link-local or unspecified address, a name without a dot, or one of privateNames.
func (c Config) private() bool {
	u, err := url.Parse(strings.ReplaceAll(c.URL, "{model}", "model"))
	if err != nil {
		return false
	}
	host := u.Hostname()
	if !strings.ContainsAny(host, ".:") || slices.ContainsFunc(privateNames, func(end string) bool { return strings.HasSuffix(strings.ToLower(host), end) }) {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10).Contains(a))
}

// endpoints are paths that users copy into a base URL from a provider's documentation.
var endpoints = []string{"/chat/completions", "/completions", "/responses", "/embeddings", "/models", "/messages"}

// Hint returns a correction for a URL that is valid but probably wrong, or "".
func (c Config) Hint() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	path := strings.TrimRight(u.Path, "/")
	for _, e := range endpoints {
		if base, ok := strings.CutSuffix(path, e); ok {
			u.Path = base
			return fmt.Sprintf("%s names an endpoint, and the gateway adds the endpoint itself: probably %s is meant", c.URL, u)
		}
	}
	if path == "" && apis[c.API()].end == "" && u.Hostname() != "api.deepseek.com" { // its base works without /v1
		u.Path = "/v1"
		return fmt.Sprintf("%s has no path: probably %s is meant", c.URL, u)
	}
	return ""
}

package configs

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery/plan"
	"github.com/rebound-llm/rebound/recovery/route"
)

// validate calls every package's Validate, then checks what concerns several packages.
func (r *reader) validate(c *Config) {
	r.validateValue(reflect.ValueOf(c).Elem(), "")
	r.checkListen(c)
	r.checkGatewayKeys(c)
	r.checkChains("strategies", c.Strategies)
	r.checkRules(c)
	r.checkSummarizer(c)
	r.checkPlanner(c)
	if at := c.Store.Content; at != ContentSealed && at != ContentOff {
		r.report("store.content", "must be %s or %s", ContentSealed, ContentOff)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		r.checkUpstream(c, name, c.Upstreams[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		r.checkModel(c, name, c.Models[name])
	}
}

// validateValue calls Validate on v or on the values in it, and reports the errors
// under the full path of the key.
func (r *reader) validateValue(v reflect.Value, key string) {
	if own, ok := v.Interface().(interface{ Validate() error }); ok {
		r.reportAll(key, own.Validate())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case !f.IsExported() || name == "-":
			case options == "inline":
				r.validateValue(v.Field(i), key)
			default:
				r.validateValue(v.Field(i), joinKey(key, name))
			}
		}
	case reflect.Map:
		for _, name := range mapNames(v) {
			r.validateValue(v.MapIndex(reflect.ValueOf(name)), childKey(key, name))
		}
	}
}

// mapNames returns the keys of a map, sorted.
func mapNames(v reflect.Value) (names []string) {
	for _, k := range v.MapKeys() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}

// keyPath matches the path of a key at the beginning of a message: limits.body, keys[0].env, prices["m"].input.
var keyPath = regexp.MustCompile(`^([a-z][a-z0-9_]*(?:\[(?:[0-9]+|"(?:[^"\\]|\\.)*")\])*(?:\.[a-z][a-z0-9_]*(?:\[[0-9]+\])*)*): `)

// plainEntry matches a quoted name that childKey writes without quotes.
var plainEntry = regexp.MustCompile(`\["([A-Za-z0-9_-]+)"\]`)

// reportAll reports each part of a joined error. The parts start with their keys.
func (r *reader) reportAll(key string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			r.reportAll(key, e)
		}
		return
	}
	path, message := "", err.Error()
	if m := keyPath.FindStringSubmatch(message); m != nil {
		path, message = plainEntry.ReplaceAllString(m[1], ".$1"), message[len(m[0]):]
	}
	at := joinKey(key, path)
	if !r.failed(at) && !r.unreadable(at) {
		r.report(at, "%s", message)
	}
}

// loopback reports whether only this machine can reach an address.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return true // reported elsewhere
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.TrimSuffix(strings.Split(host, "%")[0], "."))
	return ip != nil && ip.IsLoopback()
}

func (r *reader) checkListen(c *Config) {
	_, port, err := net.SplitHostPort(c.Proxy.Listen)
	if err != nil {
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		r.report("listen", "the port %s is not a number from 0 to 65535", quote(port))
	}
}

func (r *reader) checkGatewayKeys(c *Config) {
	names, values := map[string]int{}, map[string]int{}
	for i, k := range c.Proxy.Auth.Keys {
		key := fmt.Sprintf("auth.keys[%d]", i)
		if first, ok := names[k.Name]; ok && k.Name != "" {
			if !r.failed(key + ".name") {
				r.report(key+".name", "%s is used twice, first by keys[%d]: give each key its own name", quote(k.Name), first)
			}
		} else {
			names[k.Name] = i
		}
		r.checkLabel(key+".name", k.Name)
		if k.Value == "" {
			continue
		}
		if other, ok := values[k.Value]; ok {
			r.report(key, "has the same secret as keys[%d]: each key needs its own, or requests cannot be told apart", other)
			continue
		}
		values[k.Value] = i
	}
	if t := c.Proxy.Auth.AdminToken; t != "" {
		if other, ok := values[t]; ok {
			r.report("auth.admin_env", "the admin token is also the secret of keys[%d]: they must differ", other)
		}
	}
}

// checkSummarizer refuses a summariser at an upstream that is not declared.
func (r *reader) checkSummarizer(c *Config) {
	const key = "fit.summarizer.upstream"
	name := c.Fit.Summarizer.Upstream
	if _, ok := c.Upstreams[name]; name != "" && !ok && !r.failed(key) {
		r.report(key, "no upstream is called %s: declare it under upstreams", quote(name))
	}
}

func (r *reader) checkPlanner(c *Config) {
	p := c.Planner
	if _, ok := c.Upstreams[p.Upstream]; p.Enabled() && p.Upstream != plan.Same && !ok && !r.failed("planner.upstream") {
		r.report("planner.upstream", "no upstream is called %s: declare it under upstreams, or write same", quote(p.Upstream))
	}
	if hook := p.Webhook.URL; hook != "" {
		u, err := url.Parse(hook)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			r.report("planner.webhook.url", "must be a URL like https://hooks.example.com/rebound")
		case u.User != nil:
			r.report("planner.webhook.url", "secrets never stand in this file: take the password out; what is sent is signed")
		}
	}
}

var label = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// checkLabel refuses names that would make metrics and logs unreadable.
func (r *reader) checkLabel(key, name string) {
	if name != "" && !label.MatchString(name) {
		r.report(key, "%s cannot be a name: use up to 64 letters, digits and . _ - @", quote(redact.Quote(name)))
	}
}

// Headers and query parameters that carry credentials at some provider.
var (
	secretHeaders = []string{"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"}
	secretQueries = []string{"key", "api_key", "api-key", "apikey", "access_token", "token"}
	hopHeaders    = []string{"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
	headerName    = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

func (r *reader) checkUpstream(c *Config, name string, u upstream.Config) {
	key := childKey("upstreams", name)
	r.checkLabel(key, name)
	if len(u.Keys) > 0 && len(c.Proxy.Auth.Keys) == 0 && !r.failed("auth.keys") && !loopback(c.Proxy.Listen) {
		from := ""
		if env, ok := r.fromEnv["listen"]; ok {
			from = " (" + env + ")"
		}
		r.report(key+".keys", "anyone who reaches %s%s would spend these keys: add auth.keys, so that clients need a key of the gateway, or listen on 127.0.0.1", c.Proxy.Listen, from)
	}
	r.checkLoop(c.Proxy.Listen, key, u)
	for i, h := range u.ForwardHeaders {
		at := fmt.Sprintf("%s.forward_headers[%d]", key, i)
		switch lower := strings.ToLower(h); {
		case slices.Contains(secretHeaders, lower) || lower == strings.ToLower(u.Credential()):
			r.report(at, "%s carries a client's credential, which goes to no other host: use passthrough for the upstream that it belongs to", h)
		case slices.Contains(hopHeaders, lower) || !headerName.MatchString(h):
			r.report(at, "%s is not the name of a header that can be forwarded", quote(h))
		}
	}
	if u.AuthHeader != "" && !headerName.MatchString(u.AuthHeader) && !r.failed(key+".auth_header") {
		r.report(key+".auth_header", "must be the name of a header, like Authorization or api-key")
	}
	for _, h := range slices.Sorted(maps.Keys(u.Headers)) {
		at := childKey(key+".headers", h)
		switch lower := strings.ToLower(h); {
		case slices.Contains(secretHeaders, lower) || lower == strings.ToLower(u.Credential()):
			r.report(at, "secrets never stand in this file: use keys with env or file, and auth_header: %s", h)
		case slices.Contains(hopHeaders, lower):
			r.report(at, "is set by the gateway: remove it")
		case !headerName.MatchString(h):
			r.report(at, "%s is not the name of a header", quote(h))
		case strings.ContainsFunc(u.Headers[h], func(c rune) bool { return c < ' ' && c != '\t' || c > '~' }):
			r.report(at, "must be one line of plain ASCII text")
		}
	}
	for _, q := range slices.Sorted(maps.Keys(u.Query)) {
		if slices.Contains(secretQueries, strings.ToLower(q)) {
			r.report(childKey(key+".query", q), "secrets never stand in this file: use keys with env or file, and auth_header")
		}
	}
	r.checkProxy(key+".proxy", u.Proxy)
	for i, k := range u.Keys {
		r.checkWeight(fmt.Sprintf("%s.keys[%d]", key, i), k.Weight)
	}
}

// checkLoop refuses an upstream that is the gateway itself, because each request would
// cause another one without end.
func (r *reader) checkLoop(listen, key string, u upstream.Config) {
	to, err := url.Parse(u.URL)
	host, port, lerr := net.SplitHostPort(listen)
	if err != nil || lerr != nil || u.Proxy != "" && u.Proxy != "none" || to.Port() != port && (to.Port() != "" || defaultPorts[to.Scheme] != port) {
		return
	}
	own, _ := netip.ParseAddr(host) // the zero address for a name
	any := host == "" || own.IsUnspecified()
	name := to.Hostname()
	at, _ := netip.ParseAddr(name)
	at, own = at.Unmap(), own.Unmap()
	switch {
	case strings.EqualFold(name, host), at.IsValid() && at == own,
		any && (loopback(to.Hostname()+":0") || at.IsUnspecified() || thisMachine(at)),
		strings.EqualFold(name, "localhost") && own.IsLoopback(), at.IsLoopback() && host == "localhost", at.IsUnspecified() && own.IsLoopback():
		r.report(key+".url", "leads to the gateway itself, which listens on %s: name the server that runs the model, or another address in listen", listen)
	}
}

// defaultPorts are the ports of URLs without one.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// thisMachine reports whether an address is one of this machine's.
func thisMachine(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(list, func(own net.Addr) bool {
		p, err := netip.ParsePrefix(own.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

func (r *reader) checkProxy(key, proxy string) {
	if proxy == "" || proxy == "env" || proxy == "none" || r.failed(key) {
		return
	}
	p, err := url.Parse(proxy)
	switch {
	case err != nil || p.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, p.Scheme):
		r.report(key, "must be env, none, or a URL like http://proxy.example:3128 (http, https or socks5)")
	case p.User != nil:
		r.report(key, "secrets never stand in this file: write env and put the address with its password into HTTPS_PROXY")
	}
}

func (r *reader) checkModel(c *Config, name string, m route.Model) {
	key := childKey("models", name)
	if name == "" || len(name) > 256 || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.report(key, "%s cannot be the name of a model: it must be one line without spaces around it", quote(name))
	}
	declared := slices.Sorted(maps.Keys(c.Upstreams))
	for i, t := range m.Targets {
		at := fmt.Sprintf("%s.targets[%d].upstream", key, i)
		if _, ok := c.Upstreams[t.Upstream]; !ok && t.Upstream != "" && !r.failed(at) {
			r.reportUpstream(at, t.Upstream, declared, "declare it under upstreams, or name one of ")
		}
		r.checkWeight(fmt.Sprintf("%s.targets[%d]", key, i), t.Weight)
	}
}

// checkWeight refuses an explicit weight of 0: it looks like a way to disable an entry,
// but means the same as no weight.
func (r *reader) checkWeight(entry string, weight float64) {
	if weight == 0 && r.has(entry+".weight") && !r.failed(entry+".weight") {
		r.report(entry+".weight", "must be above 0: to leave an entry unused, remove it")
	}
}

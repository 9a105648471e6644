package configs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Replaceable returns an [Errors] if next must not replace c in a running gateway, or nil.
//
// Half of a file is often valid YAML. So a reload cannot remove what protects the gateway or decides where requests go:
// the last gateway key, and the sections auth and upstreams. A change of listen takes effect only after a restart, so
// next must not expose upstream keys at the current address.
func (c *Config) Replaceable(next *Config) error {
	var problems Errors
	refuse := func(key, format string, args ...any) {
		problems = append(problems, Problem{File: next.Path(), Key: key, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case len(c.Proxy.Auth.Keys) > 0 && len(next.Proxy.Auth.Keys) == 0:
		refuse("auth.keys", "the last gateway key is gone: a running gateway goes on asking for one; restart it if everybody is to be let in")
	case c.origin.auth && !next.origin.auth:
		refuse("auth", "the section is gone: a running gateway keeps it; restart it if that is meant")
	}
	if c.origin.upstreams && !next.origin.upstreams {
		refuse("upstreams", "the section is gone: a running gateway sends nothing to the default upstream instead; restart it if that is meant")
	}
	if c.Listen() != next.Listen() && !loopback(c.Listen()) {
		if name, ok := next.exposed(); ok {
			refuse(childKey("upstreams", name)+".keys", "anyone who reaches %s, which stays open until a restart, would spend these keys: add auth.keys", c.Listen())
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// UntilRestart returns next with those values of c that a running gateway cannot replace, and the names of all settings
// that differ and take effect only after a restart.
func (c *Config) UntilRestart(next *Config) (kept *Config, settings []string) {
	k := *next
	for _, s := range []struct {
		name      string
		old, kept any // pointers
	}{
		{"listen", &c.Proxy.Listen, &k.Proxy.Listen},
		{"admin.listen", &c.Proxy.Admin.Listen, &k.Proxy.Admin.Listen},
		{"limits.headers", &c.Proxy.Limits.Headers, &k.Proxy.Limits.Headers},
		{"limits.head_timeout", &c.Proxy.Limits.HeadTimeout, &k.Proxy.Limits.HeadTimeout},
		{"limits.idle_timeout", &c.Proxy.Limits.IdleTimeout, &k.Proxy.Limits.IdleTimeout},
		{"store", &c.Store, &k.Store},
		{"otlp", &c.OTLP, &k.OTLP},
		{"log.format", &c.Log.Format, &k.Log.Format},
		{"log.queue", &c.Log.Queue, &k.Log.Queue},
	} {
		if !reflect.DeepEqual(s.old, s.kept) {
			settings = append(settings, s.name)
			reflect.ValueOf(s.kept).Elem().Set(reflect.ValueOf(s.old).Elem())
		}
	}
	if on := c.Proxy.TLS.Certificate != nil; on != (next.Proxy.TLS.Certificate != nil) {
		settings, k.Proxy.TLS = append(settings, "tls"), c.Proxy.TLS // a renewed certificate is loaded
	}
	return &k, settings
}

// exposed returns an upstream whose keys anyone who reaches the gateway can use.
func (c *Config) exposed() (name string, ok bool) {
	if len(c.Proxy.Auth.Keys) > 0 {
		return "", false
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if len(c.Upstreams[name].Keys) > 0 {
			return name, true
		}
	}
	return "", false
}

// gives reports whether the file has any key in a top-level section.
func (r *reader) gives(section string) bool {
	for key := range r.places {
		if strings.HasPrefix(key, section+".") {
			return true
		}
	}
	return false
}

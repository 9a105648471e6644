package redact

import (
	"net/url"
	"regexp"
)

var (
	secretName = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|passw|sign|credential`)
	userInfo   = regexp.MustCompile(`://[^"'\n]*@`)
	beforeHost = regexp.MustCompile(`://[^?#]*@`)
	password   = regexp.MustCompile(`[^\s"'/:@]*:[^\s"'/:@]+@`) // user and password without a scheme
)

// Quote takes keys and passwords out of text that quotes a configuration.
func Quote(s string) string {
	s = userInfo.ReplaceAllString(apiKey.ReplaceAllString(s, Hidden), "://"+Hidden+"@")
	return password.ReplaceAllString(s, Hidden+"@")
}

// Value is Quote for the whole value of a setting: nothing of one with a key in it stays, and of a
// URL only the user and password go.
func Value(s string) string {
	if apiKey.MatchString(s) {
		return Hidden
	}
	switch u, err := url.Parse(s); {
	case err != nil:
		return userInfo.ReplaceAllString(s, "://"+Hidden+"@")
	case u.User != nil:
		return beforeHost.ReplaceAllString(s, "://"+Hidden+"@")
	}
	return s
}

// Names reports whether the value of a header or parameter of that name is a secret.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

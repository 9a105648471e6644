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

// Quote removes keys and passwords from text that quotes a configuration.
func Quote(s string) string {
	s = userInfo.ReplaceAllString(apiKey.ReplaceAllString(s, Hidden), "://"+Hidden+"@")
	return password.ReplaceAllString(s, Hidden+"@")
}

// Value is Quote for the whole value of a setting: a value that contains a key is hidden completely, a
// URL only loses user and password.
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

// IsSecretName reports whether the value of a header or parameter with this name is a secret.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

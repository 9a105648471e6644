package configs

import (
	"strings"
	"testing"
)

// An upstream that is the gateway itself is refused at the start.
func TestUpstreamIsTheGateway(t *testing.T) {
	for _, c := range []struct {
		listen, url string
		bad         bool
	}{
		{"127.0.0.1:8080", "http://127.0.0.1:8080/v1", true},
		{"127.0.0.1:8080", "http://localhost:8080/v1", true},
		{"127.0.0.1:8080", "http://0.0.0.0:8080/v1", true},
		{"127.0.0.1:80", "http://localhost/v1", true},
		{"localhost:8080", "http://127.0.0.1:8080/v1", true},
		{"[::1]:8080", "http://[::1]:8080/v1", true},
		{"0.0.0.0:8080", "http://127.0.0.1:8080/v1", true},
		{":8080", "http://localhost:8080/v1", true},
		{"127.0.0.1:8080", "http://127.0.0.1:9000/v1", false},
		{"127.0.0.1:8080", "http://127.0.0.2:8080/v1", false},
		{"127.0.0.1:8080", "http://10.255.255.1:8080/v1", false},
		{"0.0.0.0:8080", "http://192.0.2.1:8080/v1", false},
		{"127.0.0.1:8080", "https://api.openai.com/v1", false},
	} {
		_, err := Parse("a.yaml", []byte("listen: \""+c.listen+"\"\nupstreams: {default: {url: \""+c.url+"\"}}\n"), nil)
		if bad := err != nil && strings.Contains(err.Error(), "upstreams.default.url: leads to the gateway itself"); bad != c.bad {
			t.Errorf("%s at %s: %v", c.url, c.listen, err)
		}
	}
}

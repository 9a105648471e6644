package redis

import (
	"context"
	"strings"
	"time"
)

// Server is what a server says of itself. What it does not tell is zero.
type Server struct {
	Version string    // such as "redis 7.2.4" or "valkey 8.0.1"
	Policy  string    // maxmemory-policy
	Limited bool      // maxmemory is set
	Time    time.Time // its clock
}

// Server asks the server, or one of several, about itself, for operators. An error is what
// Ping returns; what an access list forbids is only missing.
func (s *Store) Server(ctx context.Context) (Server, error) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	var out Server
	at, err := s.client.Time(ctx).Result()
	if err == nil {
		out.Time = at
	}
	text, infoErr := s.client.Info(ctx).Result()
	if infoErr != nil && err == nil {
		return out, nil // forbidden
	}
	for line := range strings.Lines(text) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "redis_version":
			if out.Version == "" {
				out.Version = "redis " + value
			}
		case "valkey_version":
			out.Version = "valkey " + value
		case "maxmemory_policy":
			out.Policy = value
		case "maxmemory":
			out.Limited = value != "0"
		}
	}
	return out, s.wrap(infoErr)
}

package redis

import (
	"context"
	"strings"
	"time"
)

// Server is what a server reports of itself. What it does not report is zero.
type Server struct {
	Version string    // such as "redis 7.2.4" or "valkey 8.0.1"
	Policy  string    // maxmemory-policy
	Limited bool      // maxmemory is set
	Time    time.Time // its clock
}

// Server asks the server, or one of several, about itself, for operators. What an access list
// forbids is missing; errors are those of Ping.
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
		return out, nil // an access list forbids INFO
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

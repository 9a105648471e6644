//go:build linux

package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fill fills what a gateway keeps up to a bound, so that what grows afterwards is
// none of that: 48 MiB of messages that were read, 65,536 counts of tokens, and
// 10,000 events.
func (s *soak) fill(ctx context.Context, g *gateway, r *rand.Rand) error {
	for range 72 {
		if err := s.fillOnce(ctx, g, r, 500, strings.Repeat("Line %d of %s says what it says.\n", 30), "fit"); err != nil {
			return err
		}
	}
	for range 3500 {
		if err := s.fillOnce(ctx, g, r, 1, "bash: tool-%d-of-%s: command not found", ""); err != nil {
			return err
		}
	}
	return nil
}

// fillOnce sends a history of so many calls and results, and sees what was done to it.
func (s *soak) fillOnce(ctx context.Context, g *gateway, r *rand.Rand, pairs int, result, recovery string) error {
	nonce := newNonce(r)
	id := nonce + ".1"
	history := []message{{Role: "system", Content: "You help " + nonce + "."}, {Role: "user", Content: "Do step " + id + "."}}
	for i := range pairs {
		call := sentCall{ID: fmt.Sprintf("call-%d", i), Type: "function", Function: toolCall{"look-" + nonce, fmt.Sprintf(`{"city":"%s %d"}`, id, i)}}
		history = append(history, message{Role: "assistant", ToolCalls: []sentCall{call}},
			message{Role: "tool", ToolID: call.ID, Content: strings.NewReplacer("%d", strconv.Itoa(i), "%s", id).Replace(result)})
	}
	body, err := json.Marshal(map[string]any{"model": "fill", "messages": history, "max_tokens": 1000, "tools": tools(nonce)})
	if err != nil {
		return err
	}
	p := newPlan(id, nonce, &faults[0], "", 100)
	s.up.add(p)
	defer s.up.remove(p)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL()+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-"+nonce)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if did := resp.Header.Get("X-Rebound-Recovery"); err == nil && (resp.StatusCode != http.StatusOK || !strings.Contains(did, recovery)) {
		err = fmt.Errorf("%s, recovery %q, not %q: %.500s", resp.Status, did, recovery, answer)
	}
	return err
}

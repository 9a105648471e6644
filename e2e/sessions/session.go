package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// session is a recorded session. Its history is in Messages, or in Input if it is one of
// the Responses API.
type session struct {
	ID           string            `json:"id"`
	Format       string            `json:"format"` // "messages" for Anthropic's Messages API
	Messages     []json.RawMessage `json:"messages"`
	Input        []json.RawMessage `json:"input"`
	System       json.RawMessage   `json:"system"`
	Instructions json.RawMessage   `json:"instructions"`
	Tools        json.RawMessage   `json:"tools"`
	Solved       *bool             `json:"solved"`
	Exit         string            `json:"exit"`

	file string
}

// history is what the session's requests repeat, with the API that they use.
func (s *session) history() ([]json.RawMessage, transcript.Format) {
	switch {
	case len(s.Input) > 0:
		return s.Input, transcript.Responses
	case s.Format == "messages":
		return s.Messages, transcript.Messages
	}
	return s.Messages, transcript.Chat
}

// solved reports whether the session is known to have reached its goal.
func (s *session) solved() bool { return s.Solved != nil && *s.Solved }

// byModel reports whether the model made an element of the history.
func byModel(raw json.RawMessage) bool {
	var m struct {
		Role string `json:"role"`
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &m)
	return m.Role == "assistant" || m.Role == "" && !strings.HasSuffix(m.Type, "_output")
}

// body is the request that the agent made before element n of the history.
func (s *session) body(n int) []byte {
	list, format := s.history()
	var b bytes.Buffer
	b.WriteString(`{"model":"recorded",`)
	switch format {
	case transcript.Responses:
		field(&b, "instructions", s.Instructions)
		b.WriteString(`"input":[`)
	case transcript.Messages:
		b.WriteString(`"max_tokens":32000,`)
		field(&b, "system", s.System)
		b.WriteString(`"messages":[`)
	default:
		b.WriteString(`"messages":[`)
	}
	for i, m := range list[:n] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	b.WriteByte(']')
	if len(s.Tools) > 2 && s.Tools[0] == '[' {
		fmt.Fprintf(&b, `,"tools":%s`, s.Tools)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// field writes a field that a session may lack.
func field(b *bytes.Buffer, name string, value json.RawMessage) {
	if len(value) > 0 && string(value) != "null" {
		fmt.Fprintf(b, `%q:%s,`, name, value)
	}
}

// maxSession bounds one line of a file, in bytes.
const maxSession = 256 << 20

// load reads the sessions of a file.
func load(name string) (list []*session, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	short := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".jsonl"), ".json")
	if strings.HasSuffix(name, ".json") {
		raw, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		s := &session{file: short}
		if err := json.Unmarshal(raw, s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.ID = cmp.Or(s.ID, short)
		return []*session{s}, nil
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxSession)
	for lines.Scan() {
		s := &session{file: short}
		if err := json.Unmarshal(lines.Bytes(), s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.ID = cmp.Or(s.ID, fmt.Sprintf("%s-%d", short, len(list)))
		list = append(list, s)
	}
	return list, lines.Err()
}

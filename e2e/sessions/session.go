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
)

// session is a recorded session.
type session struct {
	ID       string            `json:"id"`
	Messages []json.RawMessage `json:"messages"`
	Tools    json.RawMessage   `json:"tools"`
	Solved   *bool             `json:"solved"`
	Exit     string            `json:"exit"`

	file string
}

// solved reports whether the session is known to have reached its goal.
func (s *session) solved() bool { return s.Solved != nil && *s.Solved }

// role is that of message i.
func (s *session) role(i int) string {
	var m struct {
		Role string `json:"role"`
	}
	_ = json.Unmarshal(s.Messages[i], &m)
	return m.Role
}

// body is the request that the agent made before message n.
func (s *session) body(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"recorded","messages":[`)
	for i, m := range s.Messages[:n] {
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

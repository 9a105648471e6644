package redact

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Least is the length from which a key is searched for in what clients read. Shorter ones are often
// placeholders for servers that need no key ("EMPTY"), and occur in normal text.
const Least = 8

// Known finds the gateway's own keys in text, also when escaped as in JSON or in a URL. It is an
// Aho-Corasick automaton, linear in the text for any number of keys. Immutable; nil finds nothing.
type Known struct {
	root  [256]int32
	nodes []secretNode // 0 is the root
}

// secretNode represents a prefix of a secret.
type secretNode struct {
	next, sibling, fail int32
	depth, found        int32 // length of the prefix; length of the secret that ends here, 0 for none
	b                   byte
}

// NewKnown returns a Known for the secrets of at least least bytes, or nil if there are none.
func NewKnown(secrets []string, least int) *Known {
	s := &Known{nodes: make([]secretNode, 1)}
	for _, k := range secrets {
		if len(k) < least {
			continue
		}
		s.add(k)
		s.add(url.QueryEscape(k))
		s.add(url.PathEscape(k))
		quoted, _ := json.Marshal(k) // a string always marshals
		inside := string(quoted[1 : len(quoted)-1])
		s.add(inside)
		s.add(strings.ReplaceAll(inside, "/", `\/`))
	}
	if len(s.nodes) == 1 {
		return nil
	}
	s.link()
	return s
}

func (s *Known) add(word string) {
	at := int32(0)
	for i := range len(word) {
		n := s.child(at, word[i])
		if n == 0 {
			n = int32(len(s.nodes))
			s.nodes = append(s.nodes, secretNode{sibling: s.nodes[at].next, depth: int32(i + 1), b: word[i]})
			s.nodes[at].next = n
			if at == 0 {
				s.root[word[i]] = n
			}
		}
		at = n
	}
	s.nodes[at].found = int32(len(word))
}

func (s *Known) child(at int32, b byte) int32 {
	if at == 0 {
		return s.root[b]
	}
	n := s.nodes[at].next
	for n != 0 && s.nodes[n].b != b {
		n = s.nodes[n].sibling
	}
	return n
}

// link sets the fail links: from each prefix to its longest suffix that is also a prefix.
func (s *Known) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for n := s.nodes[at].next; n != 0; n = s.nodes[n].sibling {
			if at != 0 {
				s.nodes[n].fail = s.step(s.nodes[at].fail, s.nodes[n].b)
			}
			if s.nodes[n].found == 0 {
				s.nodes[n].found = s.nodes[s.nodes[n].fail].found
			}
			queue = append(queue, n)
		}
	}
}

func (s *Known) step(at int32, b byte) int32 {
	for {
		if n := s.child(at, b); n != 0 || at == 0 {
			return n
		}
		at = s.nodes[at].fail
	}
}

// Bytes returns text with its secrets replaced. It does not modify text.
func (s *Known) Bytes(text []byte) []byte {
	if s == nil || !s.in(text) {
		return text
	}
	var m match
	out := make([]byte, 0, len(text))
	for _, b := range text {
		out = s.next(out, b, &m)
	}
	return out
}

// in reports whether a text contains a secret.
func (s *Known) in(text []byte) bool {
	at := int32(0)
	for _, b := range text {
		if at = s.step(at, b); s.nodes[at].found > 0 {
			return true
		}
	}
	return false
}

// match is the state of a search. The zero match is at the beginning of a text.
type match struct {
	at    int32 // node
	shown int   // bytes in the output since the last secret
}

// next appends the next byte of a text to out, and replaces a secret that ends with it. Overlapping
// secrets, and a longer one that begins with another, are replaced together.
func (s *Known) next(out []byte, b byte, m *match) []byte {
	out, m.shown = append(out, b), m.shown+1
	m.at = s.step(m.at, b)
	n := int(s.nodes[m.at].found)
	if n == 0 {
		return out
	}
	out = out[:len(out)-min(n, m.shown)]
	if n <= m.shown {
		out = append(out, Hidden...)
	}
	m.shown = 0
	return out
}

// Header replaces the secrets in the values of headers, in place.
func (s *Known) Header(h http.Header) {
	if s == nil {
		return
	}
	for _, values := range h {
		for i, v := range values {
			values[i] = string(s.Bytes([]byte(v)))
		}
	}
}

// Body returns body with its secrets replaced. It only holds back bytes that may be the beginning of a
// secret.
func (s *Known) Body(body io.ReadCloser) io.ReadCloser {
	if s == nil {
		return body
	}
	return &redactingReader{ReadCloser: body, s: s}
}

// redactingReader is a body whose secrets are replaced as it is read.
type redactingReader struct {
	io.ReadCloser
	s     *Known
	m     match
	ready []byte // to be returned by Read
	held  []byte // may begin a secret
	chunk []byte
	err   error
}

func (h *redactingReader) Read(p []byte) (int, error) {
	for len(h.ready) == 0 && h.err == nil {
		if h.chunk == nil {
			h.chunk = make([]byte, 16<<10)
		}
		n, err := h.ReadCloser.Read(h.chunk)
		h.err = err
		out := h.held
		for _, b := range h.chunk[:n] {
			out = h.s.next(out, b, &h.m)
		}
		keep := min(int(h.s.nodes[h.m.at].depth), h.m.shown)
		if err != nil {
			keep = 0
		}
		h.ready, h.held = out[:len(out)-keep], append([]byte(nil), out[len(out)-keep:]...)
	}
	n := copy(p, h.ready)
	h.ready = h.ready[n:]
	if n == 0 {
		return 0, h.err
	}
	return n, nil
}

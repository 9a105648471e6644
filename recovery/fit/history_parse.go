package fit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"hash/maphash"
	"strings"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// parsedMessage is a message's content without its place. Every request of a session carries
// the message again, so it is parsed once and cached. It is immutable.
type parsedMessage struct {
	text        string
	shape       transcript.Shape
	calls       []callInfo // their spans are relative to the message's start
	callSums    [][32]byte
	answers     string   // id of the call that it answers
	brokenCalls int      // calls whose arguments are not a JSON object
	sum         [32]byte // of role, text, media and calls
	size        int      // in the cache, approximate bytes
}

// maxParsed limits the cache of parsed messages, in bytes.
const maxParsed = 48 << 20

// parseCache caches parsed messages by their bytes, and rendered edits; the least recently
// used are evicted first. Safe for concurrent use.
type parseCache struct {
	seed maphash.Seed
	*store.Cache[parseKey, *parsedMessage]
	renders *store.Cache[renderKey, renderResult]
}

// parseKey identifies a message by its content. The hash's seed differs per process.
type parseKey struct {
	hash uint64
	size int
}

// renderKey identifies a recipe applied to a message's content, of the task or of what follows.
type renderKey struct {
	sum  [32]byte
	op   op
	a    uint32
	lead bool
}

// renderResult is a cached result of render.
type renderResult struct {
	rendered
	ok bool
}

func newParseCache() *parseCache {
	return &parseCache{maphash.MakeSeed(), store.NewCache[parseKey, *parsedMessage](maxParsed), store.NewCache[renderKey, renderResult](maxParsed / 6)}
}

// parse returns the parsed message, from the cache if possible.
func (r *parseCache) parse(m transcript.Message) *parsedMessage {
	key := parseKey{maphash.Bytes(r.seed, m.Raw()), m.End - m.Start}
	if v, ok := r.Get(key); ok {
		return v
	}
	v := parseMessage(m)
	r.Put(key, v, v.size)
	return v
}

func parseMessage(m transcript.Message) *parsedMessage {
	v := &parsedMessage{text: m.Text(), shape: m.Shape()}
	v.shape.Mark = bytes.Clone(v.shape.Mark)
	if m.Role == transcript.RoleTool {
		v.answers = strings.Clone(m.ToolCallID())
	}
	v.size = 512 + len(v.text) + len(v.shape.Mark)
	h := sha256.New()
	hashString(h, m.Role)
	hashString(h, v.text)
	if v.shape.Media > 0 {
		hashString(h, string(m.AppendMedia(nil)))
	}
	for _, c := range m.ToolCalls() {
		text := c.Text()
		c.ID, c.Name = strings.Clone(c.ID), strings.Clone(c.Name)
		hashString(h, c.ID)
		hashString(h, c.Name)
		hashString(h, text)
		v.callSums = append(v.callSums, sha256.Sum256([]byte(text)))
		info := readCall(c, text)
		if !info.isObject {
			v.brokenCalls++
		}
		info.Arguments = nil
		if info.Span != (transcript.Span{}) {
			info.Span.Start -= m.Start
			info.Span.End -= m.Start
		}
		info.IDSpan = transcript.Span{}
		v.calls = append(v.calls, info)
		v.size += 512 + 2*len(text)
	}
	h.Sum(v.sum[:0])
	return v
}

// callsIn returns the calls with their places in the body of m.
func (v *parsedMessage) callsIn(b *transcript.Body, m transcript.Message) []callInfo {
	if len(v.calls) == 0 {
		return nil
	}
	out := make([]callInfo, len(v.calls))
	for i, c := range v.calls {
		if c.Span != (transcript.Span{}) {
			c.Span.Start += m.Start
			c.Span.End += m.Start
			c.Arguments = b.Raw()[c.Span.Start:c.Span.End:c.Span.End]
		}
		out[i] = c
	}
	return out
}

// callInfo is a call as the shrinker and the digest read it.
type callInfo struct {
	transcript.ToolCall
	text        string // the arguments, decoded
	isObject    bool   // text is a JSON object
	command     string // the shell command, if it runs one
	files       []trajectory.File
	attempt     string // equal for repeated attempts at the same thing
	returnsData bool   // its result is data, such as files, listings or pages
}

func readCall(c transcript.ToolCall, text string) callInfo {
	t := trajectory.Call{Tool: c.Name, Arguments: text}
	return callInfo{ToolCall: c, text: text, isObject: transcript.Valid([]byte(text), 64) == nil && strings.HasPrefix(strings.TrimSpace(text), "{"),
		command: t.Line(), files: t.Files(), attempt: t.Attempt(), returnsData: t.Kind() == trajectory.Reader || t.Line() != "" && t.Reads()}
}

// label names the call for the model: the tool, and its command, file or arguments, shortened.
func (c callInfo) label() string {
	about := ""
	switch {
	case c.command != "":
		about = oneLine(c.command, 160)
	case len(c.files) > 0:
		about = oneLine(c.files[0].Path, 200)
	case c.isObject && len(c.text) > 2:
		about = oneLine(c.text, 120)
	}
	name := cmp.Or(oneLine(c.Name, 80), "a tool")
	if about == "" {
		return name
	}
	return name + " (" + about + ")"
}

package fit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// parsedMessage is what a message says, apart from where it stands: what is read once
// of each message of a session, which every request carries again. Safe for
// concurrent use: nothing but fails is ever changed.
type parsedMessage struct {
	text        string
	shape       transcript.Shape
	calls       []callInfo // their places are counted from the message's beginning
	callSums    [][32]byte
	answers     string   // id of the call that it answers
	brokenCalls int      // calls whose arguments are no JSON object
	sum         [32]byte // of role, text, media and calls
	size        int      // bytes, about

	// failure is whether it says that its call failed: 0 not read yet, 1 yes, -1 no.
	// The second is for calls that show what is there.
	failure [2]atomic.Int32
}

// maxParsed is how many bytes of readings are kept in the process.
const maxParsed = 48 << 20

// parseCache keeps what was read of messages, by their bytes; the least recently
// used go first. Safe for concurrent use.
type parseCache struct {
	seed maphash.Seed
	*store.Cache[parseKey, *parsedMessage]
	renders *store.Cache[renderKey, renderResult]
}

// parseKey names a message by its content. The hash is seeded in each process.
type parseKey struct {
	hash uint64
	size int
}

// renderKey names what a recipe makes of a message.
type renderKey struct {
	sum [32]byte
	op  op
	a   uint32
}

// renderResult is what came of a recipe; ok is false where it does not apply.
type renderResult struct {
	rendered
	ok bool
}

func newParseCache() *parseCache {
	return &parseCache{maphash.MakeSeed(), store.NewCache[parseKey, *parsedMessage](maxParsed), store.NewCache[renderKey, renderResult](maxParsed / 6)}
}

// parse is what a message says.
func (r *parseCache) parse(m transcript.Message) *parsedMessage {
	key := parseKey{maphash.Bytes(r.seed, m.Raw()), m.End - m.Start}
	if v, ok := r.Get(key); ok {
		return v
	}
	v := parseMessage(m)
	r.Put(key, v, v.size)
	return v
}

// parseMessage reads a message.
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

// callsIn are the calls of a message as they stand in its body.
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

// callInfo is a call as the planner and the digest read it.
type callInfo struct {
	transcript.ToolCall
	text        string // the arguments, as the tool got them
	isObject    bool   // text is a JSON object
	command     string // that a shell runs
	files       []trajectory.File
	attempt     string // what two tries at one thing have in common
	returnsData bool   // what it answers is data: files, listings, pages
}

func readCall(c transcript.ToolCall, text string) callInfo {
	t := trajectory.Call{Tool: c.Name, Arguments: text}
	return callInfo{ToolCall: c, text: text, isObject: transcript.Valid([]byte(text), 64) == nil && strings.HasPrefix(strings.TrimSpace(text), "{"),
		command: t.Line(), files: t.Files(), attempt: t.Attempt(), returnsData: t.Kind() == trajectory.Reader || t.Line() != "" && t.Reads()}
}

// label names the call for a reader, bounded: the tool and what it is about.
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

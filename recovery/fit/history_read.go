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

// reading is what a message says, apart from where it stands: what is read once
// of each message of a session, which every request carries again. Safe for
// concurrent use: nothing but fails is ever changed.
type reading struct {
	text     string
	shape    transcript.Shape
	calls    []callInfo // their places are counted from the message's beginning
	callSums [][32]byte
	answers  string   // id of the call that it answers
	broken   int      // calls whose arguments are no JSON object
	sum      [32]byte // of role, text, media and calls
	size     int      // bytes, about

	// fails is whether it says that its call failed: 0 not read yet, 1 yes, -1 no.
	// The second is for calls that show what is there.
	fails [2]atomic.Int32
}

// maxReadings is how many bytes of readings are kept in the process.
const maxReadings = 48 << 20

// readings keeps what was read of messages, by their bytes; the least recently
// used go first. Safe for concurrent use.
type readings struct {
	seed maphash.Seed
	*store.Cache[readingKey, *reading]
	made *store.Cache[madeKey, made]
}

// readingKey names a message by its content. The hash is seeded in each process.
type readingKey struct {
	hash uint64
	size int
}

// madeKey names what a recipe makes of a message.
type madeKey struct {
	sum [32]byte
	op  op
	a   uint32
}

// made is what came of a recipe; ok is false where it does not apply.
type made struct {
	rendered
	ok bool
}

func newReadings() *readings {
	return &readings{maphash.MakeSeed(), store.NewCache[readingKey, *reading](maxReadings), store.NewCache[madeKey, made](maxReadings / 6)}
}

// read is what a message says.
func (r *readings) read(m transcript.Message) *reading {
	key := readingKey{maphash.Bytes(r.seed, m.Raw()), m.End - m.Start}
	if v, ok := r.Get(key); ok {
		return v
	}
	v := readMessage(m)
	r.Put(key, v, v.size)
	return v
}

// readMessage reads a message.
func readMessage(m transcript.Message) *reading {
	v := &reading{text: m.Text(), shape: m.Shape()}
	v.shape.Mark = bytes.Clone(v.shape.Mark)
	if m.Role == transcript.RoleTool {
		v.answers = strings.Clone(m.ToolCallID())
	}
	v.size = 512 + len(v.text) + len(v.shape.Mark)
	h := sha256.New()
	part(h, m.Role)
	part(h, v.text)
	if v.shape.Media > 0 {
		part(h, string(m.AppendMedia(nil)))
	}
	for _, c := range m.ToolCalls() {
		text := c.Text()
		c.ID, c.Name = strings.Clone(c.ID), strings.Clone(c.Name)
		part(h, c.ID)
		part(h, c.Name)
		part(h, text)
		v.callSums = append(v.callSums, sha256.Sum256([]byte(text)))
		info := readCall(c, text)
		if !info.object {
			v.broken++
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
func (v *reading) callsIn(b *transcript.Body, m transcript.Message) []callInfo {
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
	text    string // the arguments, as the tool got them
	object  bool   // text is a JSON object
	command string // that a shell runs
	files   []trajectory.File
	tried   string // what two tries at one thing have in common
	data    bool   // what it answers is data: files, listings, pages
}

func readCall(c transcript.ToolCall, text string) callInfo {
	t := trajectory.Call{Tool: c.Name, Arguments: text}
	return callInfo{ToolCall: c, text: text, object: transcript.Valid([]byte(text), 64) == nil && strings.HasPrefix(strings.TrimSpace(text), "{"),
		command: t.Line(), files: t.Files(), tried: t.Attempt(), data: t.Kind() == trajectory.Reader || t.Line() != "" && t.Reads()}
}

// label names the call for a reader, bounded: the tool and what it is about.
func (c callInfo) label() string {
	about := ""
	switch {
	case c.command != "":
		about = oneLine(c.command, 160)
	case len(c.files) > 0:
		about = oneLine(c.files[0].Path, 200)
	case c.object && len(c.text) > 2:
		about = oneLine(c.text, 120)
	}
	name := cmp.Or(oneLine(c.Name, 80), "a tool")
	if about == "" {
		return name
	}
	return name + " (" + about + ")"
}

package inspect

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/rule"
	"github.com/rebound-llm/rebound/recovery/transcript"
	"github.com/rebound-llm/rebound/store"
)

// Limits of the texts that are searched, in bytes: of the instructions, of one message, of all messages, and of
// one sentence.
const (
	maxInstructions = 96 << 10
	maxWords        = 16 << 10
	maxAllWords     = 128 << 10
	maxSentence     = 400
)

// maxKnown limits how many texts' results are cached.
const maxKnown = 4096

// Preferences finds what users forbid in a conversation, in their own words and in the instructions: "never use
// sudo". It is immutable and safe for concurrent use; it loads and compiles its rules on first use.
type Preferences struct {
	get func() (*preferences, error)
}

type preferences struct {
	*rule.List
	of    map[recovery.Deeds]rule.Mask
	signs []string                                 // a sentence without any of these is skipped
	known *store.Cache[secretName, recovery.Deeds] // results by the texts' hashes, because most texts come again
	seeds [2]maphash.Seed                          // seeds of the hashes; with known seeds someone could construct two texts with one hash
}

// NewPreferences returns Preferences with the rules from load; the rules' classes are names of deeds.
func NewPreferences(load func() (rule.Set, error)) *Preferences {
	return &Preferences{get: sync.OnceValues(func() (*preferences, error) {
		set, err := load()
		if err != nil {
			return nil, err
		}
		list, err := rule.Compile(set, rule.Vocabulary{Classes: recovery.DeedNames(), TextOnly: true})
		if err == nil {
			err = list.Index()
		}
		if err != nil {
			return nil, err
		}
		p := &preferences{list, map[recovery.Deeds]rule.Mask{}, set.Words["signs"], store.NewCache[secretName, recovery.Deeds](maxKnown),
			[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
		for _, name := range recovery.DeedNames() {
			p.of[recovery.DeedsOf(name)] = list.Mask(func(r *rule.Rule) bool { return r.Class == name })
		}
		return p, nil
	})}
}

// Warm loads and compiles the rules now.
func (p *Preferences) Warm() { _, _ = p.get() }

// Barred returns what users and instructions forbid in a conversation. Tool output and the model's words do not
// count. A later permission revokes nothing. It takes linear, limited time: it reads the first 96 KiB of the
// instructions, and the last 128 KiB of the user's messages, 16 KiB of each.
func (p *Preferences) Barred(b *transcript.Body) recovery.Deeds {
	all, _ := p.barred(new(lists).readHistory(b))
	return all
}

// barred also returns the part that users said themselves: not in instructions, and not in text that a program
// inserted.
func (p *Preferences) barred(h *history) (all, said recovery.Deeds) {
	l, err := p.get()
	if err != nil {
		return 0, 0
	}
	all = l.recall(string(clip(h.Body.AppendSystem(nil), maxInstructions)))
	left := maxAllWords
	messages := h.userMessages()
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		text := clip(h.List[messages[i].index].Text(), min(left, maxWords))
		deeds := l.recall(text)
		if all |= deeds; deeds != 0 {
			said |= l.recall(withoutInserts(text))
		}
		left -= len(text)
	}
	return all, said
}

// withoutInserts returns a user's message without text that programs insert: text in tags that begin a line, and
// files of instructions.
func withoutInserts(text string) string {
	var own strings.Builder
	closing := ""
	for line := range strings.Lines(text) {
		if closing == "" && len(line) > 1 && line[0] == '<' && (line[1]|0x20 >= 'a' && line[1]|0x20 <= 'z') {
			closing = "</" + line[1:1+strings.IndexAny(line[1:]+">", " />\n")] + ">"
		}
		if closing != "" {
			_, rest, ended := strings.Cut(line, closing)
			if !ended {
				continue
			}
			line, closing = rest, ""
		}
		own.WriteString(line)
	}
	text = strings.TrimSpace(own.String())
	if strings.HasPrefix(text, "#") || strings.HasPrefix(text, "[") {
		return ""
	}
	return text
}

func clip[T string | []byte](text T, n int) T { return text[:min(len(text), n)] }

// recall returns read's result for a text, from the cache if possible.
func (l *preferences) recall(text string) recovery.Deeds {
	key := secretName{maphash.String(l.seeds[0], text), maphash.String(l.seeds[1], text)}
	out, ok := l.known.Get(key)
	if !ok {
		out = l.read(text)
		l.known.Put(key, out, 1)
	}
	return out
}

// read returns what the sentences of a text forbid.
func (l *preferences) read(text string) (out recovery.Deeds) {
	text = strings.ToLower(text)
	for text != "" {
		var s string
		if s, text = sentence(text); !slices.ContainsFunc(l.signs, func(sign string) bool { return strings.Contains(s, sign) }) {
			continue
		}
		if hits := l.Scan(nil, s); len(hits) > 0 {
			for deed, mask := range l.of {
				if out&deed == 0 && l.FirstOf(mask, hits, &rule.Subject{Raw: s}) >= 0 {
					out |= deed
				}
			}
		}
	}
	return out
}

// sentence returns the first sentence of a text and the rest.
func sentence(text string) (first, rest string) {
	for i, r := range text {
		switch r {
		case '\n', '。', '！', '？', ';':
			return text[:i], text[i+len(string(r)):]
		case '.', '!', '?':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n' {
				return text[:i+1], text[i+1:]
			}
		}
		if i >= maxSentence {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

package stream

import (
	"bytes"
	"io"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
)

// maxUsages limits how many usage objects are parsed.
const maxUsages = 8

// UsageIn finds the last usage in the end of any answer, whole or streamed: in the field names of
// completions, of the Responses API, or of the Messages API. In model output the quotes of the name
// are escaped, so it is not found there.
func UsageIn(tail []byte) (u recovery.Usage, ok bool) {
	const name = `"usage"`
	for end, looked := len(tail), 0; looked < maxUsages; {
		i := bytes.LastIndex(tail[:end], []byte(name))
		if i < 0 {
			return u, false
		}
		end = i
		value, found := bytes.CutPrefix(bytes.TrimLeft(tail[i+len(name):], " \t\r\n"), []byte(":"))
		v := gjson.ParseBytes(value)
		if !found || !v.IsObject() {
			continue
		}
		looked++
		u = usageOf(v)
		if v.Get("prompt_tokens").Raw == "" { // the Messages API does not include cache reads and writes in the input
			u.Input += number(v, "cache_creation_input_tokens") + number(v, "cache_read_input_tokens")
		}
		if u.Input+u.Output > 0 {
			return u, true
		}
	}
	return u, false
}

// maxEnd is how many bytes at each end of a Metered answer are searched.
const maxEnd = 16 << 10

// Metered is an answer that is passed on unread. Its usage is found at its ends: in formats whose streams begin with the
// usage of the input, that of the output is at the end.
type Metered struct {
	io.ReadCloser
	Size int64
	head []byte // the first bytes
	tail []byte // the last bytes: at least maxEnd of them, or all
}

// Read implements io.Reader.
func (m *Metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.Size += int64(n)
	if room := maxEnd - len(m.head); room > 0 {
		m.head = append(m.head, p[:min(n, room)]...)
	}
	m.tail = append(m.tail, p[:n]...)
	if len(m.tail) > 2*maxEnd {
		m.tail = append(m.tail[:0], m.tail[len(m.tail)-maxEnd:]...)
	}
	return n, err
}

// Usage returns the usage that was found, and whether there was any.
func (m *Metered) Usage() (recovery.Usage, bool) {
	first, begins := UsageIn(m.head)
	last, ends := UsageIn(m.tail)
	return laterUsage(first, last), begins || ends
}

// laterUsage returns the usage that an answer reported last, with that of its beginning for what it lacks.
func laterUsage(first, last recovery.Usage) recovery.Usage {
	if last.Input == 0 {
		last.Input, last.CacheRead, last.CacheWrite = first.Input, first.CacheRead, first.CacheWrite
	}
	last.Output = max(last.Output, first.Output)
	return last
}

// usageOf reads token counts in OpenAI's field names and the common ones for caches.
func usageOf(v gjson.Result) (u recovery.Usage) {
	total := 0
	v.ForEach(func(k, v gjson.Result) bool {
		n := count([]byte(v.Raw))
		switch k.Str {
		case "prompt_tokens", "input_tokens":
			u.Input = max(u.Input, n)
		case "completion_tokens", "output_tokens":
			u.Output = max(u.Output, n)
		case "prompt_tokens_details", "input_tokens_details":
			u.CacheRead, u.CacheWrite = max(u.CacheRead, number(v, "cached_tokens")), max(u.CacheWrite, number(v, "cache_write_tokens"))
		case "total_tokens":
			total = n
		case "cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens": // the last two: DeepSeek, Moonshot
			u.CacheRead = max(u.CacheRead, n)
		case "cache_creation_input_tokens":
			u.CacheWrite = max(u.CacheWrite, n)
		case "completion_tokens_details", "output_tokens_details":
			u.Reasoning = number(v, "reasoning_tokens")
		}
		return true
	})
	if total == u.Input+u.Output+u.Reasoning { // xAI does not count reasoning as output
		u.Output += u.Reasoning
	}
	return u
}

// maxCount is the largest accepted count; it prevents overflows in sums.
const maxCount = 1 << 50

// count reads a count in any notation, and limits it to 0 to maxCount.
func count(v []byte) int {
	n := 0
	for _, c := range v {
		if c < '0' || c > '9' || n > maxCount/10 {
			return int(max(0, min(gjson.ParseBytes(v).Int(), maxCount)))
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func number(v gjson.Result, path string) int { return count([]byte(v.Get(path).Raw)) }

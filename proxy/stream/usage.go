package stream

import (
	"bytes"

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
		n := func(names ...string) (most int) {
			for _, name := range names {
				most = max(most, count([]byte(v.Get(name).Raw)))
			}
			return most
		}
		u.Input = n("prompt_tokens", "input_tokens")
		if v.Get("prompt_tokens").Raw == "" { // the Messages API does not include cache reads and writes in the input
			u.CacheWrite = n("cache_creation_input_tokens")
			u.Input += u.CacheWrite + n("cache_read_input_tokens")
		}
		u.Output = n("completion_tokens", "output_tokens")
		u.CacheRead = n("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "cache_read_input_tokens")
		if u.Input+u.Output > 0 {
			return u, true
		}
	}
	return u, false
}

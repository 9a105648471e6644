package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// urls matches URLs and their hosts, including forms with missing or extra slashes that lenient parsers accept.
var urls = recovery.NewPattern(`(?i)\b(?:(?:https?|wss?|ftp):[/\\]*|[a-z][a-z0-9+.-]{1,12}:(?:\\?/){2,})(?:[^\s/@"'<>\\]{1,128}@)?([^\s/:?#"'<>\\@]{1,253})`)

// bare matches host names without a scheme, as in a search or a mail address.
var bare = recovery.NewPattern(`(?i)[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,8}\.(?:[a-z]{2,24}|xn--[a-z0-9-]{2,32})\b`)

// hosts are the hosts that the user, the agent's program or the model has named, in a URL or as a word.
type hosts struct{ addresses, words map[string]bool }

// hostsIn collects the hosts of a conversation; tool output does not count.
func hostsIn(b *transcript.Body) hosts {
	named := hosts{map[string]bool{}, map[string]bool{}}
	add := func(text string) {
		for _, m := range urls.FindAllStringSubmatch(text, 64) {
			if len(named.addresses) < 1024 {
				named.addresses[strings.ToLower(m[1])] = true
			}
		}
		for _, m := range bare.FindAllString(text, 256) {
			if len(named.words) < 1024 {
				named.words[strings.ToLower(m)] = true
			}
		}
	}
	add(b.Instructions())
	read := 0
	for _, m := range withoutTools(b) {
		if read > 1<<20 || bytes.IndexByte(m.Raw(), '.') < 0 {
			continue
		}
		read += m.End - m.Start
		add(m.Text())
		for _, c := range m.ToolCalls() {
			add(c.Text())
		}
	}
	return named
}

// withoutTools returns the messages that contain no tool's output, except large ones.
func withoutTools(b *transcript.Body) (out []transcript.Message) {
	for i, m := range b.Messages() {
		if m.Role != transcript.RoleTool && m.End-m.Start <= maxMessage && !trajectory.IsObservation(b, i) {
			out = append(out, m)
		}
	}
	return out
}

// bareHostsKnown reports whether every host name in a text that is not part of a URL is known. [call.hostsKnown] checks
// URLs.
func (c *call) bareHostsKnown(text string) bool {
	return !slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		if at := urls.FindAllStringSubmatchIndex(word, 1); len(at) > 0 && at[0][0] == 0 {
			return false
		}
		return slices.ContainsFunc(bare.FindAllString(word, 64), func(name string) bool { return !c.hosts.words[strings.ToLower(name)] })
	})
}

// hostsKnown reports whether every URL in a text has a known host. A URL whose text after the host could change the
// host counts as unknown.
func (c *call) hostsKnown(text string) bool {
	for _, at := range urls.FindAllStringSubmatchIndex(text, -1) {
		if !c.hosts.addresses[strings.ToLower(text[at[2]:at[3]])] {
			return false
		}
		rest := text[at[3]:]
		if end := strings.IndexAny(rest, "/?# \t\r\n"); end >= 0 {
			rest = rest[:end]
		}
		if port, ok := strings.CutPrefix(rest, ":"); ok {
			if rest = strings.TrimLeft(port, "0123456789"); rest == port {
				return false
			}
		}
		// A shell removes quotes, and the text before an @ is a user name.
		if strings.Contains(rest, "@") || len(rest) > 1 && strings.ContainsRune("\"'\\<>", rune(rest[0])) && !strings.ContainsRune(",;)]}", rune(rest[1])) {
			return false
		}
	}
	return true
}

// completeURLs reports whether every parameter that the tool declares as a URL is a complete URL with a known host.
// Without a scheme a host looks like a path.
func (c *call) completeURLs(t transcript.Tool, parameters string) bool {
	return everyParameter(t, parameters, func(p trajectory.Parameter, v gjson.Result) bool {
		if p.Holds&trajectory.HoldsURL == 0 || p.Holds&trajectory.HoldsPath != 0 || v.Type != gjson.String || v.Str == "" {
			return true
		}
		// Browsers remove these before they parse a URL.
		clean := strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(v.Str))
		at := urls.FindAllStringSubmatchIndex(clean, 1)
		return len(at) > 0 && at[0][0] == 0 && c.hostsKnown(clean)
	})
}

// wordsKnown reports whether every word of a network command is a word of the failing call or a plain URL.
func (c *call) wordsKnown(command string) bool {
	var before []string
	if c.failed != nil {
		before = wordsOf(c.failed.Arguments)
	}
	return !slices.ContainsFunc(strings.Fields(command), func(word string) bool {
		return !slices.Contains(before, word) && !address(word)
	})
}

// address reports whether a shell word is a plain URL without anything that a shell expands.
func address(word string) bool {
	special := "\"'\\$`;|&(){}<>*[]!"
	if n := len(word); n > 2 && word[0] == word[n-1] && (word[0] == '"' || word[0] == '\'') {
		word, special = word[1:n-1], "\"'\\$`"
	}
	at := urls.FindAllStringSubmatchIndex(word, 1)
	return len(at) > 0 && at[0][0] == 0 && !strings.ContainsAny(word, special)
}

// wordsOf returns the words of a call's arguments.
func wordsOf(arguments string) (out []string) {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return strings.Fields(arguments)
	}
	_ = walk(gjson.Parse(arguments), 0, func(text string) error { // deeper levels have no words
		out = append(out, strings.Fields(text)...)
		return nil
	})
	return out
}

// knownValuesIn returns a function that reports whether a value appears in the user's words or the agent's own calls.
// It reads the newest messages only, up to 1 MiB.
func knownValuesIn(b *transcript.Body) func(value string) bool {
	var all strings.Builder
	for _, m := range slices.Backward(withoutTools(b)) {
		if m.Role == transcript.RoleUser {
			all.WriteString(m.Text() + "\n")
		}
		for _, c := range m.ToolCalls() {
			all.WriteString(strings.Join(wordsOf(c.Text()), " ") + "\n" + c.Text() + "\n")
		}
		if all.Len() > 1<<20 {
			break
		}
	}
	said := all.String()
	return func(value string) bool { return strings.Contains(said, value) }
}

package repair

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The repairs of a tool's name, as named in events.
const (
	ruleNameSafe      = "name_safe"      // fs_read_file, if the target refused the name fs.read_file
	ruleNamePrefix    = "name_prefix"    // functions.read_file, default_api:read_file, read_file<|channel|>commentary
	ruleNameNamespace = "name_namespace" // fs.read_file, mcp__fs__read_file
	ruleNameSpelling  = "name_spelling"  // readFile, Read-File
	ruleNameNear      = "name_near"      // raed_file
	ruleNameOnly      = "name_only"      // no name at all, and only one tool
)

// offeredTools are the tools that a request offers, for one judgement. The list is
// parsed on demand: most answers without calls do not need it.
type offeredTools struct {
	mender *Mender
	req    *transcript.Body
	some   bool // there are any
	choice transcript.ToolChoice
	loaded []transcript.Tool // nil until list
}

func (m *Mender) offeredTools(req *transcript.Body) offeredTools {
	return offeredTools{mender: m, req: req, some: req.HasTools(), choice: req.ToolChoice()}
}

// list returns all tools, in order. Agents send the same list with each request, so parsed
// lists are cached: parsing twenty tools takes as long as the rest of the judgement.
func (o *offeredTools) list() []transcript.Tool {
	if o.loaded == nil && o.some {
		if raw := o.req.ToolList(); raw != nil && len(raw) <= maxToolList {
			o.loaded = o.mender.toolLists.getOrMake(uint64(o.req.Format()), raw, o.req.Format().Tools)
		} else {
			o.loaded = o.req.Tools()
		}
	}
	return o.loaded
}

// mayBeUnlisted reports whether a name that the request does not list may still be a tool's: that of a tool of an MCP
// server, or of one that the client adds in the course of the conversation, which then mentions it.
func (o *offeredTools) mayBeUnlisted(name string) bool {
	return slices.ContainsFunc(o.list(), func(t transcript.Tool) bool {
		if t.Type == transcript.KindAdded {
			return o.mentioned(name) || o.mentioned(stripName(name))
		}
		return !t.Own && (t.Name == "" || !t.Callable() && t.Type != "custom")
	})
}

// mentioned reports whether the request contains a name as a word. It makes no copy of the request, which may be long.
func (o *offeredTools) mentioned(name string) bool {
	inside := func(c byte) bool {
		return c == '_' || c == '-' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
	}
	for before, rest, found := []byte(nil), o.req.Raw(), name != ""; found; {
		before, rest, found = bytes.Cut(rest, []byte(name))
		n := len(before)
		escape := n > 1 && before[n-2] == '\\' && strings.IndexByte("nrt", before[n-1]) >= 0 // white space, whose letter belongs to no word
		if found && n > 0 && (escape || !inside(before[n-1])) && len(rest) > 0 && !inside(rest[0]) {
			return true
		}
	}
	return false
}

// byName returns the tool of exactly that name, or nil.
func (o *offeredTools) byName(name string) *transcript.Tool {
	list := o.list()
	for i := range list {
		if list[i].Name == name && name != "" {
			return &list[i]
		}
	}
	return nil
}

// onlyTool returns the tool that a call without a name must mean, nil if there are several.
func (o *offeredTools) onlyTool() *transcript.Tool {
	if o.choice.Choice == transcript.ChoiceNamed {
		return o.byName(o.choice.Name)
	}
	if len(o.choice.Allowed) == 1 {
		return o.byName(o.choice.Allowed[0])
	}
	if list := o.list(); len(list) == 1 && list[0].Name != "" {
		return &list[0]
	}
	return nil
}

// prefixes are prefixes that models put before a name out of habit from training.
var prefixes = []string{"functions.", "function.", "functions:", "function:", "functions/", "function=", "tools.", "tool.",
	"default_api.", "default_api:", "to=functions.", "to=", "tool_use.", "api.", "assistant."}

// stripName removes what never belongs to a name: space, quotes, special tokens,
// the prefixes of providers, and the counter of Kimi's call ids (functions.f:0).
func stripName(name string) string {
	name = strings.Trim(name, " \t\r\n\"'`")
	for range 4 {
		before := name
		if m := functionHead.FindString(name); m != "" {
			name = strings.TrimLeft(name[len(m):], `"' `)
		} else if r, n := parseMark(name); r == roleBegin {
			name = strings.TrimSpace(name[n:])
		}
		for _, mark := range []string{"<|", "<｜"} {
			if i := strings.Index(name, mark); i > 0 {
				name = name[:i]
			} else if i == 0 {
				_, name, _ = strings.Cut(name, ">")
			}
		}
		for _, p := range prefixes {
			if len(name) > len(p) && strings.EqualFold(name[:len(p)], p) {
				name = name[len(p):]
			}
		}
		if i := strings.LastIndexByte(name, ':'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
			name = name[:i]
		}
		name = strings.TrimSuffix(name, "()")
		name = strings.Trim(name, " \t\r\n\"'`")
		if name == before {
			break
		}
	}
	return name
}

// resolve returns the tool that a name means, and the rule that found it; nil if there is none. A tool whose
// name is a typo away is meant only if fits accepts it.
func (o *offeredTools) resolve(name string, fits func(t *transcript.Tool) bool) (t *transcript.Tool, rule string) {
	if t := o.byName(name); t != nil {
		return t, ""
	}
	if len(name) > 256 {
		return nil, ""
	}
	if strings.TrimSpace(name) == "" {
		return o.unlessGuarded(o.onlyTool(), ruleNameOnly)
	}
	if t := o.bySafeName(name); t != nil {
		return t, ruleNameSafe
	}
	short := stripName(name)
	if t := o.byName(short); t != nil && o.choice.Allows(t.Name) {
		return t, ruleNamePrefix
	}
	if o.mayBeUnlisted(name) {
		return nil, ""
	}
	segment := lastSegment(short)
	if t := o.uniqueMatch(func(n string) bool {
		s := lastSegment(n)
		return segment == n || s == short || s == segment && s != n && segment != short
	}); t != nil {
		return o.unlessGuarded(t, ruleNameNamespace)
	}
	key := trajectory.Plain(short)
	if t := o.uniqueMatch(func(n string) bool { return trajectory.Plain(n) == key }); t != nil && key != "" {
		return o.unlessGuarded(t, ruleNameSpelling)
	}
	key = trajectory.Plain(segment)
	if t := o.uniqueMatch(func(n string) bool { return trajectory.Plain(lastSegment(n)) == key }); t != nil && key != "" {
		return o.unlessGuarded(t, ruleNameSpelling)
	}
	near := o.uniqueMatch(func(n string) bool { return isTypo(short, n) })
	if near == nil || !near.Callable() || o.mender.guarded(near) || !fits(near) {
		return nil, ""
	}
	return near, ruleNameNear
}

// bySafeName returns the tool that was sent to the target under this name, because the
// target refuses the tool's own name. It is not a guess, so it applies to guarded tools too.
func (o *offeredTools) bySafeName(name string) *transcript.Tool {
	list := o.list()
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	for own, safe := range recovery.SafeNames(names) {
		if safe == name && own != name {
			return o.byName(own)
		}
	}
	return nil
}

// unlessGuarded returns the tool and the rule, or nothing without a tool and for a guarded one.
func (o *offeredTools) unlessGuarded(t *transcript.Tool, rule string) (*transcript.Tool, string) {
	if t == nil || o.mender.guarded(t) {
		return nil, ""
	}
	return t, rule
}

// uniqueMatch returns the tool whose name matches, nil if several or none do or if it is not allowed.
func (o *offeredTools) uniqueMatch(match func(name string) bool) (found *transcript.Tool) {
	list := o.list()
	for i := range list {
		t := &list[i]
		if t.Name == "" || !match(t.Name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	if found != nil && !o.choice.Allows(found.Name) {
		return nil
	}
	return found
}

// lastSegment returns the last part of a name with namespaces: read_file for mcp__fs__read_file, fs.read_file,
// fs/read_file and fs:read_file.
func lastSegment(name string) string {
	if i := strings.LastIndexAny(name, "./:"); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	return name
}

// opposites are words that differ in few letters and a lot in meaning: a model that
// writes one of them means it, so it is no typo.
const opposites = " get set put add sub start restart stop open close enable disable lock unlock import export mount unmount " +
	"subscribe unsubscribe push pull send receive encode decode encrypt decrypt upload download attach detach " +
	"increase decrease increment decrement raise lower min max up down left right on off in out yes no first last " +
	"next prev previous read load save write copy show hide list create delete update search book look like " +
	"unlike follow unfollow do undo redo mute unmute archive unarchive pin unpin zip unzip pack unpack bind " +
	"unbind wrap unwrap link unlink register deregister login logout "

func isOpposite(word string) bool { return strings.Contains(opposites, " "+word+" ") }

// isTypo reports whether a is b with a typo: an edit distance of one, or of two in names
// of ten letters and more, with equal digits, and without one word of opposites for another.
func isTypo(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	limit := 1
	if min(len(a), len(b)) >= 10 {
		limit = 2
	}
	if len(a) < 4 || len(b) < 4 || max(len(a), len(b)) > 128 || trajectory.Distance(a, b, limit) > limit {
		return false
	}
	digits := func(s string) string {
		return strings.Map(func(c rune) rune {
			if unicode.IsDigit(c) {
				return c
			}
			return -1
		}, s)
	}
	if digits(a) != digits(b) {
		return false
	}
	wa, wb := trajectory.NameWords(a), trajectory.NameWords(b)
	for i := range min(len(wa), len(wb)) {
		if wa[i] != wb[i] && isOpposite(wa[i]) && (isOpposite(wb[i]) || len(wa) == len(wb)) {
			return false
		}
	}
	return true
}

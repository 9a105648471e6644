package repair

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// The names of what was mended in a tool's name.
const (
	ruleNameSafe      = "name_safe"      // fs_read_file where the target refused the name fs.read_file
	ruleNamePrefix    = "name_prefix"    // functions.read_file, default_api:read_file, read_file<|channel|>commentary
	ruleNameNamespace = "name_namespace" // fs.read_file, mcp__fs__read_file
	ruleNameSpelling  = "name_spelling"  // readFile, Read-File
	ruleNameNear      = "name_near"      // raed_file
	ruleNameOnly      = "name_only"      // no name at all, and only one tool
)

// tools is what a request offers, for one judgement. The list is read where a
// name has to be found in it: the judgement of an answer without calls hardly ever
// needs it.
type tools struct {
	mender *Mender
	req    *transcript.Body
	some   bool // there are any
	choice transcript.ToolChoice
	read   []transcript.Tool // nil until list
}

func (m *Mender) offered(req *transcript.Body) tools {
	return tools{mender: m, req: req, some: req.HasTools(), choice: req.ToolChoice()}
}

// list is all of them, in order. An agent offers the same with each request, and
// reading twenty tools takes as long as all else that is done for it.
func (o *tools) list() []transcript.Tool {
	if o.read == nil && o.some {
		if raw := o.req.ToolList(); raw != nil && len(raw) <= maxKit {
			o.read = o.mender.kits.of(raw, o.req.Format().Tools)
		} else {
			o.read = o.req.Tools()
		}
	}
	return o.read
}

// opaque reports whether there are tools whose calls have names that the request
// does not tell.
func (o *tools) opaque() bool {
	return slices.ContainsFunc(o.list(), func(t transcript.Tool) bool {
		return !t.Own && (t.Name == "" || !t.Callable() && t.Type != "custom")
	})
}

// named finds the tool of exactly that name.
func (o *tools) named(name string) *transcript.Tool {
	list := o.list()
	for i := range list {
		if list[i].Name == name && name != "" {
			return &list[i]
		}
	}
	return nil
}

// allowed reports whether the request lets the model call the tool. A mended
// call never goes to one that it does not.
func (o *tools) allowed(name string) bool {
	if o.choice.Choice == transcript.ChoiceNamed {
		return o.choice.Name == name
	}
	return o.choice.Allowed == nil || slices.Contains(o.choice.Allowed, name)
}

// only is the tool that a call without a name must mean, nil if there are several.
func (o *tools) only() *transcript.Tool {
	if o.choice.Choice == transcript.ChoiceNamed {
		return o.named(o.choice.Name)
	}
	if len(o.choice.Allowed) == 1 {
		return o.named(o.choice.Allowed[0])
	}
	if list := o.list(); len(list) == 1 && list[0].Name != "" {
		return &list[0]
	}
	return nil
}

// prefixes are what models put before a name because their training did.
var prefixes = []string{"functions.", "function.", "functions:", "function:", "functions/", "function=", "tools.", "tool.",
	"default_api.", "default_api:", "to=functions.", "to=", "tool_use.", "api.", "assistant."}

// bare takes off what never belongs to a name: space, quotes, special tokens,
// the prefixes of providers, and the counter of Kimi's call ids. It loses nothing.
func bare(name string) string {
	name = strings.Trim(name, " \t\r\n\"'`")
	for range 4 {
		before := name
		if m := functionHead.FindString(name); m != "" {
			name = strings.TrimLeft(name[len(m):], `"' `)
		} else if r, n := mark(name); r == begins {
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

// resolve finds the tool that a name means, with the rule that found it. near
// is the only one that is close in spelling, where nothing better was found: it
// is meant if the arguments fit it.
func (m *Mender) resolve(o *tools, name string) (t *transcript.Tool, rule string, near *transcript.Tool) {
	if t := o.named(name); t != nil {
		return t, "", nil
	}
	if len(name) > 256 {
		return nil, "", nil
	}
	if strings.TrimSpace(name) == "" {
		if t := o.only(); t != nil && !m.guarded(t) {
			return t, ruleNameOnly, nil
		}
		return nil, "", nil
	}
	if t := o.safe(name); t != nil {
		return t, ruleNameSafe, nil
	}
	short := bare(name)
	if t := o.named(short); t != nil && o.allowed(t.Name) {
		return t, ruleNamePrefix, nil
	}
	if o.opaque() {
		return nil, "", nil // it may be the name of a tool that the request does not list
	}
	if t := o.sole(func(n string) bool {
		return last(short) == n || last(n) == short || last(n) == last(short) && last(n) != n && last(short) != short
	}); t != nil {
		return m.unless(t, ruleNameNamespace)
	}
	key := trajectory.Plain(short)
	if t := o.sole(func(n string) bool { return trajectory.Plain(n) == key }); t != nil && key != "" {
		return m.unless(t, ruleNameSpelling)
	}
	if t := o.sole(func(n string) bool { return trajectory.Plain(last(n)) == trajectory.Plain(last(short)) }); t != nil && trajectory.Plain(last(short)) != "" {
		return m.unless(t, ruleNameSpelling)
	}
	list := o.list()
	for i := range list {
		t := &list[i]
		if t.Name == "" || !closeTo(short, t.Name) {
			continue
		}
		if near != nil {
			return nil, "", nil // two are as near
		}
		near = t
	}
	if near == nil || !near.Callable() || !o.allowed(near.Name) || m.guarded(near) {
		return nil, "", nil
	}
	return nil, ruleNameNear, near
}

// safe finds the tool that a target knows by this name since it refused its own: that is
// no guess.
func (o *tools) safe(name string) *transcript.Tool {
	list := o.list()
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	for own, safe := range recovery.SafeNames(names) {
		if safe == name && own != name {
			return o.named(own)
		}
	}
	return nil
}

// unless withholds a tool about whose calls nothing may be guessed.
func (m *Mender) unless(t *transcript.Tool, rule string) (*transcript.Tool, string, *transcript.Tool) {
	if m.guarded(t) {
		return nil, "", nil
	}
	return t, rule, nil
}

// sole returns the one tool whose name matches, nil if there are several or none.
func (o *tools) sole(match func(name string) bool) (found *transcript.Tool) {
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
	if found != nil && !o.allowed(found.Name) {
		return nil
	}
	return found
}

// last is the last part of a name with namespaces: mcp__fs__read_file, fs.read_file, fs/read_file, fs:read_file.
func last(name string) string {
	if i := strings.LastIndexAny(name, "./:"); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	return name
}

// opposites are words that a slip of a letter does not explain: a model that
// writes one of them means it.
const opposites = " get set put add sub start restart stop open close enable disable lock unlock import export mount unmount " +
	"subscribe unsubscribe push pull send receive encode decode encrypt decrypt upload download attach detach " +
	"increase decrease increment decrement raise lower min max up down left right on off in out yes no first last " +
	"next prev previous read load save write copy show hide list create delete update search book look like " +
	"unlike follow unfollow do undo redo mute unmute archive unarchive pin unpin zip unzip pack unpack bind " +
	"unbind wrap unwrap link unlink register deregister login logout "

func isOpposite(word string) bool { return strings.Contains(opposites, " "+word+" ") }

// closeTo reports whether a is b with a slip of the pen: a distance of one, or
// of two in names of ten letters and more, in letters that are no digits, and
// not one known word for another.
func closeTo(a, b string) bool {
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

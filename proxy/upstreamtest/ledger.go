package upstreamtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// maxLedger bounds how many responses a ledger remembers, and their items.
const maxLedger = 4096

// Ledger remembers the responses that an upstream has made and refuses what its
// real counterpart refuses about them: reasoning without the item that it led to,
// items without their reasoning, calls without outputs, unknown and duplicate
// ids, and encrypted content that another account was given. The zero value is
// ready to use. It is safe for concurrent use.
type Ledger struct {
	mu        sync.Mutex
	responses map[string]*kept
	items     map[string]issued
	order     [][]string // of a response and its items the ids, oldest first
}

// kept is a stored response.
type kept struct {
	account, model string // the model with its script
	whole          []byte
	input          string // items of the request and of what came before it, without brackets
	tokens         int    // of both
	events         *reply // of a stream that can be taken up again
}

// issued is an item that was made here.
type issued struct {
	account, raw string
	reasoning    string // the id of the reasoning that it followed
	stored       bool
}

// sealMark begins what is sealed.
const sealMark = "gAAAAAB"

// Seal is the encrypted_content of an item that this account is given.
func Seal(account, id string) string {
	return sealMark + sealOf(account) + "." + id + "." + strings.Repeat("mock0sealed0", 20) + "=="
}

func sealOf(account string) string {
	sum := sha256.Sum256([]byte(account))
	return hex.EncodeToString(sum[:6])
}

// keep remembers a response and its items.
func (l *Ledger) keep(id string, k *kept, stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.responses == nil {
		l.responses, l.items = map[string]*kept{}, map[string]issued{}
	}
	ids, reasoning := []string{id}, ""
	gjson.GetBytes(k.whole, "output").ForEach(func(_, it gjson.Result) bool {
		item := it.Get("id").Str
		l.items[item] = issued{k.account, it.Raw, reasoning, stored}
		if ids = append(ids, item); it.Get("type").Str == Reasoning {
			reasoning = item
		}
		return true
	})
	if stored {
		l.responses[id] = k
	}
	if l.order = append(l.order, ids); len(l.order) > maxLedger {
		for _, old := range l.order[0] {
			delete(l.responses, old)
			delete(l.items, old)
		}
		l.order = l.order[1:]
	}
}

// Keep remembers the response that an account's request was answered with.
func (l *Ledger) Keep(account, request string, r *Response) {
	input := l.Input(account, request)
	l.keep(r.ID, &kept{account: account, model: r.Model, whole: r.Whole(), input: input, tokens: r.In + r.Out}, Stored(request))
}

// Stored reports whether a request asks for a response that is stored, which is the default.
func Stored(request string) bool { return gjson.Get(request, "store").Type != gjson.False }

// find returns an account's stored response; to others there is none.
func (l *Ledger) find(account, id string) *kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.responses[id]; k != nil && k.account == account {
		return k
	}
	return nil
}

func (l *Ledger) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.responses, id)
}

// Input returns the items that a request is about, without brackets around them:
// those of the responses before it, and references replaced by what they name.
func (l *Ledger) Input(account, request string) string {
	var items []string
	if k := l.find(account, gjson.Get(request, "previous_response_id").Str); k != nil {
		items = append(items, k.input, strings.Trim(gjson.GetBytes(k.whole, "output").Raw, "[]"))
	}
	input := gjson.Get(request, "input")
	if input.Type == gjson.String {
		items = append(items, `{"role":"user","content":`+input.Raw+`}`)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if input.IsArray() {
		input.ForEach(func(_, it gjson.Result) bool {
			raw := it.Raw
			if made, ok := l.items[it.Get("id").Str]; ok && isReference(it) {
				raw = made.raw
			}
			items = append(items, raw)
			return true
		})
	}
	return strings.Join(slices.DeleteFunc(items, func(s string) bool { return s == "" }), ",")
}

func isReference(it gjson.Result) bool {
	typ := it.Get("type").Str
	return typ == "item_reference" || typ == "" && !it.Get("role").Exists() && it.Get("id").Exists()
}

// moved are fields of chat completions and what became of them.
var moved = map[string]string{
	"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens",
	"response_format": "text.format", "reasoning_effort": "reasoning.effort", "functions": "tools", "n": "", "stop": "", "seed": "",
}

// prefixes are how the ids of items begin.
var prefixes = map[string]string{
	Reasoning: "rs", FunctionCall: "fc", CustomCall: "ctc", Message: "msg", "compaction": "cmp",
}

// Refuse says with which status and body a request is refused for what is wrong
// with its items; status 0: it is not.
func (l *Ledger) Refuse(account, request string) (status int, body []byte) {
	if e := l.refuse(account, request); e != nil {
		return e.status, e.appendTo(nil, 0)
	}
	return 0, nil
}

func wrong(code, param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", code: code, param: param, message: fmt.Sprintf(format, args...)}
}

func (l *Ledger) refuse(account, request string) *apiError {
	for name, now := range moved {
		switch {
		case !gjson.Get(request, name).Exists():
		case now == "":
			return wrong("unknown_parameter", name, "Unknown parameter: '%s'.", name)
		default:
			return wrong("unsupported_parameter", name, "Unsupported parameter: '%s'. In the Responses API, this parameter has moved to '%s'.", name, now)
		}
	}
	input, previous := gjson.Get(request, "input"), gjson.Get(request, "previous_response_id").Str
	conversation := gjson.Get(request, "conversation").Exists() && gjson.Get(request, "conversation").Type != gjson.Null
	c := &checking{l: l, account: account, chained: conversation, calls: map[string]string{}, seen: map[string]bool{}}
	switch {
	case previous != "" && conversation:
		return wrong("mutually_exclusive_parameters", "", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only "+
			"providing one of these parameters.")
	case !input.Exists() && previous == "" && !conversation:
		return wrong("missing_required_parameter", "input", "Missing required parameter: 'input'.")
	case previous != "":
		k := l.find(account, previous)
		if k == nil {
			return wrong("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", previous)
		}
		gjson.Parse("[" + k.input + "]").ForEach(c.before)
		gjson.GetBytes(k.whole, "output").ForEach(c.before)
	case input.Type != gjson.String && !input.IsArray():
		return wrong("invalid_type", "input", "Invalid type for 'input': expected one of a string or array of input items, but got %s instead.", input.Type)
	}
	if !input.IsArray() {
		return c.end()
	}
	var bad *apiError
	i := 0
	input.ForEach(func(_, it gjson.Result) bool {
		bad = c.item(i, it)
		i++
		return bad == nil
	})
	if bad == nil {
		bad = c.end()
	}
	return bad
}

// checking is a look at the items of one request, from the first to the last.
type checking struct {
	l       *Ledger
	account string
	chained bool              // what came before is not known
	calls   map[string]string // id of a call to its kind; "" once it has its output
	order   []string
	seen    map[string]bool // ids
	pending string          // reasoning that waits for what it led to
	group   []string        // reasoning that stands before this item
}

// before takes note of an item of an earlier response.
func (c *checking) before(_, it gjson.Result) bool {
	c.pair(0, it)
	return true
}

// item says what is wrong with the next item.
func (c *checking) item(i int, it gjson.Result) *apiError {
	id, typ := it.Get("id").Str, it.Get("type").Str
	reference := isReference(it)
	if typ == "" && !reference {
		typ = Message
	}
	if reference {
		c.l.mu.Lock()
		made, ok := c.l.items[id]
		c.l.mu.Unlock()
		if !ok || made.account != c.account || !made.stored {
			return c.notFound(id)
		}
		it = gjson.Parse(made.raw)
		typ = it.Get("type").Str
	}
	path := fmt.Sprintf("input[%d]", i)
	if id != "" {
		if e := c.identity(path, id, typ); e != nil {
			return e
		}
	}
	if e := c.sealed(it, id, typ, reference); e != nil {
		return e
	}
	byModel := typ != "item_reference" && !strings.HasSuffix(typ, "_output") && (typ != Message || it.Get("role").Str == "assistant")
	if !byModel {
		if c.pending != "" {
			return c.orphaned()
		}
		c.group = nil
		return c.pair(i, it)
	}
	if typ == Reasoning {
		c.pending, c.group = id, append(c.group, id)
		return nil
	}
	c.pending = ""
	c.l.mu.Lock()
	made := c.l.items[id]
	c.l.mu.Unlock()
	if made.reasoning != "" && made.account == c.account && !slices.Contains(c.group, made.reasoning) {
		return wrong("", "input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, typ, made.reasoning)
	}
	return c.pair(i, it)
}

// identity checks an id by itself.
func (c *checking) identity(path, id, typ string) *apiError {
	if len(id) > 64 {
		return wrong("string_above_max_length", path+".id", "Invalid '%s.id': string too long. Expected a string with maximum length 64, but got a string "+
			"with length %d instead.", path, len(id))
	}
	if p := prefixes[typ]; p != "" && !strings.HasPrefix(id, p) {
		return wrong("invalid_value", path+".id", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path, id, p)
	}
	if c.seen[id] {
		return wrong("", "input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
	}
	c.seen[id] = true
	return nil
}

// sealed checks what only the account can read that was given it.
func (c *checking) sealed(it gjson.Result, id, typ string, reference bool) *apiError {
	if reference || typ != Reasoning && typ != "compaction" {
		return nil
	}
	sealed := it.Get("encrypted_content").Str
	if sealed == "" {
		c.l.mu.Lock()
		made, ok := c.l.items[id]
		c.l.mu.Unlock()
		if typ == Reasoning && (!ok || !made.stored || made.account != c.account) {
			return c.notFound(id)
		}
		return nil
	}
	if !strings.HasPrefix(sealed, sealMark+sealOf(c.account)) {
		return wrong("invalid_encrypted_content", "", "The encrypted content %.4s...%s could not be verified. Reason: Encrypted content could not be "+
			"decrypted or parsed.", sealed, sealed[max(0, len(sealed)-4):])
	}
	return nil
}

func (c *checking) notFound(id string) *apiError {
	e := wrong("", "input", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or "+
		"remove this item from your input.", id)
	e.status = http.StatusNotFound
	return e
}

func (c *checking) orphaned() *apiError {
	return wrong("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", c.pending)
}

// pair matches calls and their outputs.
func (c *checking) pair(i int, it gjson.Result) *apiError {
	typ, call := it.Get("type").Str, it.Get("call_id").Str
	switch typ {
	case FunctionCall, CustomCall, "local_shell_call", "shell_call", "apply_patch_call", "computer_call":
		for _, name := range map[string][]string{FunctionCall: {"call_id", "name", "arguments"}, CustomCall: {"call_id", "name", "input"}}[typ] {
			if it.Get(name).Type != gjson.String {
				return wrong("missing_required_parameter", fmt.Sprintf("input[%d].%s", i, name), "Missing required parameter: 'input[%d].%s'.", i, name)
			}
		}
		c.calls[call] = strings.ReplaceAll(strings.TrimSuffix(typ, "_call"), "_", " ")
		c.order = append(c.order, call)
	default:
		kind, output := strings.CutSuffix(typ, "_output")
		if !output || call == "" {
			return nil
		}
		if c.calls[call] == "" && !c.chained {
			return wrong("", "input", "No tool call found for %s call output with call_id %s.", strings.ReplaceAll(strings.TrimSuffix(kind, "_call"), "_", " "), call)
		}
		c.calls[call] = ""
	}
	return nil
}

// end says what is missing after the last item.
func (c *checking) end() *apiError {
	if c.pending != "" {
		return c.orphaned()
	}
	for _, call := range c.order {
		if kind := c.calls[call]; kind != "" {
			return wrong("", "input", "No tool output found for %s call %s.", kind, call)
		}
	}
	return nil
}

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

// maxLedger limits the responses, with their items, in a ledger.
const maxLedger = 4096

// Ledger records the responses of an upstream and refuses requests that do not
// match them, as OpenAI does: reasoning without the item that followed it, items
// without their reasoning, calls without outputs, unknown and duplicate ids, and
// encrypted content of another account. The zero value is ready to use. It is safe
// for concurrent use.
type Ledger struct {
	mu        sync.Mutex
	responses map[string]*storedResponse
	items     map[string]issuedItem
	order     [][]string // the ids of each response and its items, oldest first
}

// storedResponse is a recorded response.
type storedResponse struct {
	account, model string // model includes the script
	whole          []byte // the complete response
	input          string // items of the request and its predecessors, without brackets
	tokens         int    // of input and output
	events         *reply // the stream, if it can be resumed
}

// issuedItem is an output item of a recorded response.
type issuedItem struct {
	account, raw string
	reasoning    string // id of the last reasoning item before it
	stored       bool
}

// sealMark is the prefix of encrypted content.
const sealMark = "gAAAAAB"

// Seal returns the encrypted_content of an item, which only this account may send back.
func Seal(account, id string) string {
	return sealMark + accountSeal(account) + "." + id + "." + strings.Repeat("mock0sealed0", 20) + "=="
}

func accountSeal(account string) string {
	sum := sha256.Sum256([]byte(account))
	return hex.EncodeToString(sum[:6])
}

// store records a response and its items.
func (l *Ledger) store(id string, k *storedResponse, stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.responses == nil {
		l.responses, l.items = map[string]*storedResponse{}, map[string]issuedItem{}
	}
	ids, reasoning := []string{id}, ""
	gjson.GetBytes(k.whole, "output").ForEach(func(_, it gjson.Result) bool {
		item := it.Get("id").Str
		l.items[item] = issuedItem{k.account, it.Raw, reasoning, stored}
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

// Keep records the response to an account's request.
func (l *Ledger) Keep(account, request string, r *Response) {
	input := l.Input(account, request)
	l.store(r.ID, &storedResponse{account: account, model: r.Model, whole: r.Whole(), input: input, tokens: r.In + r.Out}, Stored(request))
}

// Stored reports whether a request asks for a response that is stored, which is the default.
func Stored(request string) bool { return gjson.Get(request, "store").Type != gjson.False }

// find returns the account's stored response, or nil.
func (l *Ledger) find(account, id string) *storedResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.responses[id]; k != nil && k.account == account {
		return k
	}
	return nil
}

func (l *Ledger) delete(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.responses, id)
}

// Input returns all input items of a request, without brackets around them: those of
// the previous responses, then its own, with references replaced by their items.
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

// movedParams maps chat completion fields to their names in the Responses API, or to
// "" if there is no such field.
var movedParams = map[string]string{
	"messages": "input", "max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens",
	"response_format": "text.format", "reasoning_effort": "reasoning.effort", "functions": "tools", "n": "", "stop": "", "seed": "",
}

// idPrefixes maps kinds of items to the prefixes of their ids.
var idPrefixes = map[string]string{
	Reasoning: "rs", FunctionCall: "fc", CustomCall: "ctc", Message: "msg", "compaction": "cmp",
}

// Refuse returns the status and body that refuse an invalid request, or status 0 for
// a valid one.
func (l *Ledger) Refuse(account, request string) (status int, body []byte) {
	if e := l.refuse(account, request); e != nil {
		return e.status, []byte(e.body(0))
	}
	return 0, nil
}

func badRequest(code, param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, typ: "invalid_request_error", code: code, param: param, message: fmt.Sprintf(format, args...)}
}

func (l *Ledger) refuse(account, request string) *apiError {
	for name, now := range movedParams {
		switch {
		case !gjson.Get(request, name).Exists():
		case now == "":
			return badRequest("unknown_parameter", name, "Unknown parameter: '%s'.", name)
		default:
			return badRequest("unsupported_parameter", name, "Unsupported parameter: '%s'. In the Responses API, this parameter has moved to '%s'.", name, now)
		}
	}
	input, previous := gjson.Get(request, "input"), gjson.Get(request, "previous_response_id").Str
	conversation := gjson.Get(request, "conversation").Exists() && gjson.Get(request, "conversation").Type != gjson.Null
	c := &itemCheck{l: l, account: account, unknownHistory: conversation, calls: map[string]string{}, seen: map[string]bool{}}
	switch {
	case previous != "" && conversation:
		return badRequest("mutually_exclusive_parameters", "", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only "+
			"providing one of these parameters.")
	case !input.Exists() && previous == "" && !conversation:
		return badRequest("missing_required_parameter", "input", "Missing required parameter: 'input'.")
	case previous != "":
		k := l.find(account, previous)
		if k == nil {
			return badRequest("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", previous)
		}
		gjson.Parse("[" + k.input + "]").ForEach(c.addEarlier)
		gjson.GetBytes(k.whole, "output").ForEach(c.addEarlier)
	case input.Type != gjson.String && !input.IsArray():
		return badRequest("invalid_type", "input", "Invalid type for 'input': expected one of a string or array of input items, but got %s instead.", input.Type)
	}
	if !input.IsArray() {
		return c.checkEnd()
	}
	var bad *apiError
	i := 0
	input.ForEach(func(_, it gjson.Result) bool {
		bad = c.checkItem(i, it)
		i++
		return bad == nil
	})
	if bad == nil {
		bad = c.checkEnd()
	}
	return bad
}

// itemCheck checks the items of one request in order.
type itemCheck struct {
	l                  *Ledger
	account            string
	unknownHistory     bool              // the items before these are not known
	calls              map[string]string // kind by call id; "" once the call has its output
	order              []string          // ids of calls
	seen               map[string]bool   // item ids
	pending            string            // id of the last reasoning item, until an item follows it
	precedingReasoning []string          // ids of reasoning in the same run of model items
}

// addEarlier adds an item of an earlier response.
func (c *itemCheck) addEarlier(_, it gjson.Result) bool {
	c.checkPair(0, it)
	return true
}

// checkItem checks the next item.
func (c *itemCheck) checkItem(i int, it gjson.Result) *apiError {
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
		if e := c.checkID(path, id, typ); e != nil {
			return e
		}
	}
	if e := c.checkSealed(it, id, typ, reference); e != nil {
		return e
	}
	byModel := typ != "item_reference" && !strings.HasSuffix(typ, "_output") && (typ != Message || it.Get("role").Str == "assistant")
	if !byModel {
		if c.pending != "" {
			return c.orphaned()
		}
		c.precedingReasoning = nil
		return c.checkPair(i, it)
	}
	if typ == Reasoning {
		c.pending, c.precedingReasoning = id, append(c.precedingReasoning, id)
		return nil
	}
	c.pending = ""
	c.l.mu.Lock()
	made := c.l.items[id]
	c.l.mu.Unlock()
	if made.reasoning != "" && made.account == c.account && !slices.Contains(c.precedingReasoning, made.reasoning) {
		return badRequest("", "input", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, typ, made.reasoning)
	}
	return c.checkPair(i, it)
}

// checkID checks an item's id.
func (c *itemCheck) checkID(path, id, typ string) *apiError {
	if len(id) > 64 {
		return badRequest("string_above_max_length", path+".id", "Invalid '%s.id': string too long. Expected a string with maximum length 64, but got a string "+
			"with length %d instead.", path, len(id))
	}
	if p := idPrefixes[typ]; p != "" && !strings.HasPrefix(id, p) {
		return badRequest("invalid_value", path+".id", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path, id, p)
	}
	if c.seen[id] {
		return badRequest("", "input", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
	}
	c.seen[id] = true
	return nil
}

// checkSealed checks that encrypted content belongs to the account, and that
// reasoning without any is stored.
func (c *itemCheck) checkSealed(it gjson.Result, id, typ string, reference bool) *apiError {
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
	if !strings.HasPrefix(sealed, sealMark+accountSeal(c.account)) {
		return badRequest("invalid_encrypted_content", "", "The encrypted content %.4s...%s could not be verified. Reason: Encrypted content could not be "+
			"decrypted or parsed.", sealed, sealed[max(0, len(sealed)-4):])
	}
	return nil
}

func (c *itemCheck) notFound(id string) *apiError {
	e := badRequest("", "input", "Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or "+
		"remove this item from your input.", id)
	e.status = http.StatusNotFound
	return e
}

func (c *itemCheck) orphaned() *apiError {
	return badRequest("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", c.pending)
}

// checkPair checks a call's fields, or that an output has its call.
func (c *itemCheck) checkPair(i int, it gjson.Result) *apiError {
	typ, call := it.Get("type").Str, it.Get("call_id").Str
	switch typ {
	case FunctionCall, CustomCall, "local_shell_call", "shell_call", "apply_patch_call", "computer_call":
		for _, name := range map[string][]string{FunctionCall: {"call_id", "name", "arguments"}, CustomCall: {"call_id", "name", "input"}}[typ] {
			if it.Get(name).Type != gjson.String {
				return badRequest("missing_required_parameter", fmt.Sprintf("input[%d].%s", i, name), "Missing required parameter: 'input[%d].%s'.", i, name)
			}
		}
		c.calls[call] = strings.ReplaceAll(strings.TrimSuffix(typ, "_call"), "_", " ")
		c.order = append(c.order, call)
	default:
		kind, output := strings.CutSuffix(typ, "_output")
		if !output || call == "" {
			return nil
		}
		if c.calls[call] == "" && !c.unknownHistory {
			return badRequest("", "input", "No tool call found for %s call output with call_id %s.", strings.ReplaceAll(strings.TrimSuffix(kind, "_call"), "_", " "), call)
		}
		c.calls[call] = ""
	}
	return nil
}

// checkEnd checks that nothing is missing after the last item.
func (c *itemCheck) checkEnd() *apiError {
	if c.pending != "" {
		return c.orphaned()
	}
	for _, call := range c.order {
		if kind := c.calls[call]; kind != "" {
			return badRequest("", "input", "No tool output found for %s call %s.", kind, call)
		}
	}
	return nil
}

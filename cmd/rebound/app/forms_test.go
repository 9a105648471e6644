package app_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// refusedForm is a row of testdata/forms.jsonl: a refusal of a request's form, a request with the defect, and what the
// server accepts.
type refusedForm struct {
	ID      string          `json:"id"`
	Status  int             `json:"status"`
	Body    json.RawMessage `json:"body"`
	Format  string          `json:"format"` // chat, responses or messages
	Request json.RawMessage `json:"request"`
	Accepts []string        `json:"accepts"` // checks of formChecks with their arguments; all must be met
	Stands  string          `json:"stands"`  // why the refusal stands: the client gets it as it is
	Keeps   []string        `json:"keeps"`   // texts that every attempt has
	Again   bool            `json:"again"`   // nothing is learnt: the refusal is about that request
	Tries   int             `json:"tries"`   // how many requests it takes; 2 if absent
}

// forms reads the rows.
func forms(t testing.TB) (rows []refusedForm) {
	t.Helper()
	data, err := os.ReadFile("testdata/forms.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var r refusedForm
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// accepts reports whether the row's server takes a request.
func (f refusedForm) accepts(t testing.TB, body []byte) bool {
	for _, c := range f.Accepts {
		name, arg, _ := strings.Cut(c, " ")
		check, ok := formChecks[name]
		if !ok {
			t.Errorf("no check %q", name)
			return false
		}
		if !check(gjson.ParseBytes(body), arg) {
			return false
		}
	}
	return true
}

// formAnswers are good answers of each format, for their paths.
var formAnswers = map[string][2]string{
	"chat":      {"/v1/chat/completions", `{"id":"chatcmpl-up","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"All is well."},"finish_reason":"stop"}]}`},
	"responses": {"/v1/responses", `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"up","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"All is well.","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":3,"total_tokens":6}}`},
	"messages":  {"/v1/messages", `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"All is well."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":3}}`},
}

// A refusal of a request's form is recovered if an edit that does not change what the client asked for makes the server
// take the request. Others reach the client as they are.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	for _, row := range forms(t) {
		t.Run(row.ID, func(t *testing.T) {
			t.Parallel()
			answer := formAnswers[row.Format]
			var mu sync.Mutex
			var seen [][]byte
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				mu.Lock()
				seen = append(seen, body)
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				said := answer[1]
				if choice := gjson.GetBytes(body, "tool_choice"); choice.IsObject() || choice.Str == "required" {
					said = strings.Replace(said, `well."}`, `well.","tool_calls":[`+call("call_up", cmp.Or(choice.Get("function.name").Str, "bash"), `{"command":"ls"}`)+`]}`, 1)
				}
				if !row.accepts(t, body) {
					w.WriteHeader(row.Status)
					said = string(row.Body)
				}
				_, _ = io.WriteString(w, said)
			}))
			t.Cleanup(srv.Close)
			up := &strict{t: t, url: srv.URL}
			if row.accepts(t, row.Request) {
				t.Fatal("the defective request is accepted")
			}
			config := up.config(strings.TrimSuffix(fastRecovery, "}") + ", graceful: error}")
			g := launch(t, strings.Replace(config, "  two:", `  messages: {url: "`+srv.URL+`/", format: anthropic, passthrough: true, profile: hosted}`+"\n  two:", 1))
			r := g.to(answer[0], string(row.Request))
			tries := len(seen)
			if tries == 0 {
				t.Fatalf("the upstream got nothing: %v", r)
			}
			t.Logf("status %d after %d requests, recovery %q", r.status, tries, r.recovery())
			if row.Stands != "" {
				if r.status != row.Status || !gjson.GetBytes(r.body, "error").Exists() {
					t.Errorf("not the upstream's error: %v", r)
				}
				return
			}
			want := max(row.Tries, 2)
			if r.status != http.StatusOK || !strings.Contains(string(r.body), "All is well.") {
				t.Fatalf("not recovered after %d requests: %v\nthe last was %s", tries, r, seen[tries-1])
			}
			for _, text := range row.Keeps {
				if !strings.Contains(string(seen[tries-1]), text) {
					t.Errorf("the edit has lost %q: %s", text, seen[tries-1])
				}
			}
			if tries != want {
				t.Errorf("%d requests, want %d; the last was %s", tries, want, seen[tries-1])
			}
			if r := g.to(answer[0], string(row.Request)); !row.Again && (len(seen) != tries+1 || r.status != http.StatusOK) {
				t.Errorf("the second request took %d: %v", len(seen)-tries, r)
			}
		})
	}
}

// to sends a request to a path and reads its answer.
func (g *gateway) to(path, body string) reply {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer sk-client")
	resp, err := g.client.Do(req)
	if err != nil {
		return reply{broken: err}
	}
	return read(resp)
}

// formChecks are the checks of the servers in testdata/forms.jsonl, by name.
var formChecks = map[string]func(b gjson.Result, arg string) bool{
	"never": func(gjson.Result, string) bool { return false },
	"paired": func(b gjson.Result, _ string) bool {
		return paired(b)
	},
	"items":     func(b gjson.Result, _ string) bool { return arraysHaveItems(b) },
	"alternate": func(b gjson.Result, _ string) bool { return !sameTurns.MatchString(roles(b)) },
	"lacks":     func(b gjson.Result, arg string) bool { return !strings.Contains(b.Raw, arg) },
	"is": func(b gjson.Result, arg string) bool {
		if arg == "tools absent or some" {
			return !b.Get("tools").Exists() || b.Get("tools.#").Int() > 0
		}
		path, value, _ := strings.Cut(arg, "=")
		return b.Get(path).Raw == value
	},
	"max": func(b gjson.Result, arg string) bool {
		path, value, _ := strings.Cut(arg, "=")
		n, err := strconv.Atoi(value)
		return err == nil && b.Get(path).Int() > 0 && b.Get(path).Int() <= int64(n)
	},
	"only": func(b gjson.Result, arg string) bool {
		allowed := strings.Split(strings.TrimPrefix(arg, "roles "), ",")
		return !slices.ContainsFunc(b.Get("messages.#.role").Array(), func(r gjson.Result) bool { return !slices.Contains(allowed, r.Str) })
	},
	"tools": func(b gjson.Result, _ string) bool {
		return !b.Get("messages.#(tool_calls)").Exists() || b.Get(`tools.#(function.name=="bash")`).Exists()
	},
	"string": func(b gjson.Result, arg string) bool { return b.Get(arg).Type == gjson.String },
	"schema": func(b gjson.Result, arg string) bool {
		return b.Get(strings.TrimPrefix(arg, "of ")).IsObject()
	},
	"names": func(b gjson.Result, arg string) bool {
		re := regexp.MustCompile(arg)
		return !slices.ContainsFunc(b.Get("tools.#.name").Array(), func(r gjson.Result) bool { return !re.MatchString(r.Str) })
	},
	"unique": func(b gjson.Result, _ string) bool {
		names := map[string]bool{}
		for _, n := range b.Get("tools.#.function.name").Array() {
			names[n.Str] = true
		}
		return len(names) == len(b.Get("tools").Array())
	},
	"thinking": func(b gjson.Result, _ string) bool { return !b.Get("enable_thinking").Bool() },
	"not":      func(b gjson.Result, _ string) bool { return !strings.Contains(b.Get("tools").Raw, `"strict":true`) },
	"short": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get("tools.#.function.name").Array(), func(r gjson.Result) bool { return len(r.Str) > 64 })
	},
	"root": func(b gjson.Result, _ string) bool {
		return everyTool(b, func(p gjson.Result) bool { return p.Get("properties").IsObject() })
	},
	"object": func(b gjson.Result, _ string) bool {
		return everyTool(b, func(p gjson.Result) bool { return p.Get("type").Str == "object" })
	},
	"typed": func(b gjson.Result, _ string) bool {
		return everyTool(b, func(p gjson.Result) bool {
			typed := true
			p.Get("properties").ForEach(func(_, v gjson.Result) bool {
				typed = v.Get("type").Exists() || v.Get("anyOf").Exists()
				return typed
			})
			return typed
		})
	},
	"first": func(b gjson.Result, _ string) bool {
		return strings.HasPrefix(strings.TrimPrefix(roles(b), "system "), "user ")
	},
	"last": func(b gjson.Result, _ string) bool { return !strings.HasSuffix(roles(b), "assistant ") },
	"one":  func(b gjson.Result, _ string) bool { return !strings.HasSuffix(roles(b), "assistant assistant ") },
	"result": func(b gjson.Result, _ string) bool {
		return everyResultNamed(b)
	},
	"content": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get("messages").Array(), func(m gjson.Result) bool {
			return m.Get("content").Type != gjson.String && !m.Get("tool_calls").Exists()
		})
	},
	"text": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get("messages").Array(), func(m gjson.Result) bool { return m.Get("content").IsArray() })
	},
	"no": func(b gjson.Result, arg string) bool {
		switch arg {
		case "null content":
			return !strings.Contains(b.Get("input").Raw, `"content":null`)
		case "reasoning items":
			return !b.Get(`input.#(type=="reasoning")`).Exists()
		case "blank content":
			return !slices.ContainsFunc(b.Get("messages").Array(), func(m gjson.Result) bool {
				c := m.Get("content")
				return c.Type == gjson.String && strings.TrimSpace(c.Str) == "" || c.Type != gjson.String && !c.IsArray() && !m.Get("tool_calls").Exists()
			})
		case "type beside anyOf":
			return !schemaWith(b.Get("tools"), func(v gjson.Result) bool { return v.Get("anyOf").IsArray() && v.Get("type").Exists() })
		case "description beside $ref":
			return !schemaWith(b.Get("tools"), func(v gjson.Result) bool { return v.Get("$ref").Exists() && v.Get("description").Exists() })
		case "$ref elsewhere":
			return !schemaWith(b.Get("tools"), func(v gjson.Result) bool {
				ref := v.Get("$ref").Str
				return ref != "" && !strings.HasPrefix(ref, "#/$defs/")
			})
		}
		v := b.Get(arg)
		return !v.Exists() || strings.Contains(arg, "#") && len(v.Array()) == 0
	},
	"depth": func(b gjson.Result, arg string) bool {
		most, err := strconv.Atoi(arg)
		return err == nil && everyTool(b, func(p gjson.Result) bool { return schemaDepth(p) <= most })
	},
	"enum": func(b gjson.Result, _ string) bool {
		return !schemaWith(b.Get("tools"), func(v gjson.Result) bool { return v.Get("enum.0").Exists() && v.Get("enum.0").Type != gjson.String })
	},
	"anyOf": func(b gjson.Result, _ string) bool {
		return !schemaWith(b.Get("tools"), func(v gjson.Result) bool { return v.Get("anyOf").IsArray() && len(v.Map()) > 1 })
	},
	"required": func(b gjson.Result, _ string) bool {
		return everyTool(b, func(p gjson.Result) bool {
			return !slices.ContainsFunc(p.Get("required").Array(), func(r gjson.Result) bool { return !p.Get("properties." + r.Str).Exists() })
		})
	},
	"described": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get("tools").Array(), func(r gjson.Result) bool {
			d := r.Get("function.description")
			return d.Exists() && d.Str == ""
		})
	},
	"json": func(b gjson.Result, _ string) bool {
		return everyCall(b, func(c gjson.Result) bool { return gjson.Valid(c.Get("function.arguments").Str) })
	},
	"call": func(b gjson.Result, _ string) bool {
		return everyCall(b, func(c gjson.Result) bool { return safeName.MatchString(c.Get("function.name").Str) })
	},
	"single": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get("messages.#.tool_calls").Array(), func(r gjson.Result) bool { return len(r.Array()) > 1 })
	},
	"reasoned": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get(`messages.#(role=="assistant")#`).Array(), func(r gjson.Result) bool { return r.Get("reasoning_content").Str == "" })
	},
	"padded": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get(`messages.#(role=="assistant")#`).Array(), func(r gjson.Result) bool { return r.Get("content").Str == "" })
	},
	"trimmed": func(b gjson.Result, _ string) bool {
		list := b.Get("messages").Array()
		last := list[len(list)-1].Get("content")
		return last.Str == strings.TrimRight(last.Str, " \n")
	},
	"system": func(b gjson.Result, arg string) bool {
		said := strings.Count(roles(b), "system ")
		switch arg {
		case "none":
			return said == 0
		case "one":
			return said == 1 && strings.HasPrefix(roles(b), "system ")
		}
		return strings.HasPrefix(roles(b), strings.Repeat("system ", said)) // at the beginning
	},
	"filled": func(b gjson.Result, _ string) bool {
		return !slices.ContainsFunc(b.Get(`messages.#(role=="tool")#.content`).Array(), func(r gjson.Result) bool { return strings.TrimSpace(r.String()) == "" })
	},
	"types": func(b gjson.Result, _ string) bool {
		return !schemaWith(b.Get("tools"), func(v gjson.Result) bool { return v.Get("type").IsArray() })
	},
	"uses": func(b gjson.Result, _ string) bool {
		seen := map[string]bool{}
		for _, r := range b.Get(`messages.#.content.#(type=="tool_use")#.id|@flatten`).Array() {
			if seen[r.Str] {
				return false
			}
			seen[r.Str] = true
		}
		return true
	},
}

var safeName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// everyCall reports whether a condition holds for every call of the history.
func everyCall(b gjson.Result, holds func(call gjson.Result) bool) bool {
	return !slices.ContainsFunc(b.Get("messages.#.tool_calls|@flatten").Array(), func(c gjson.Result) bool { return !holds(c) })
}

// schemaDepth returns the nesting of objects in a schema.
func schemaDepth(v gjson.Result) int {
	deepest := 0
	for _, p := range v.Get("properties").Map() {
		deepest = max(deepest, schemaDepth(p))
	}
	return deepest + 1
}

var sameTurns = regexp.MustCompile(`user user |assistant assistant `)

// roles are the roles of a request's messages, a space behind each.
func roles(b gjson.Result) string {
	out := ""
	for _, r := range b.Get("messages.#.role").Array() {
		out += r.Str + " "
	}
	return out
}

// everyTool reports whether a condition holds for the parameters of every tool.
func everyTool(b gjson.Result, holds func(parameters gjson.Result) bool) bool {
	return !slices.ContainsFunc(b.Get("tools").Array(), func(f gjson.Result) bool { return !holds(f.Get("function.parameters")) })
}

// everyResultNamed reports whether every result of a call has the name of its tool.
func everyResultNamed(b gjson.Result) bool {
	return !slices.ContainsFunc(b.Get("messages").Array(), func(m gjson.Result) bool { return m.Get("role").Str == "tool" && m.Get("name").Str == "" })
}

// schemaWith reports whether some object within v has a property.
func schemaWith(v gjson.Result, has func(gjson.Result) bool) (found bool) {
	if v.IsObject() && has(v) {
		return true
	}
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(_, v gjson.Result) bool {
			found = schemaWith(v, has)
			return !found
		})
	}
	return found
}

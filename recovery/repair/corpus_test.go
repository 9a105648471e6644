package repair

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// corpusCase is a case of testdata/malformed: an answer and the expected judgement.
type corpusCase struct {
	ID           string          `json:"id"`
	Form         string          `json:"form"`
	Tools        json.RawMessage `json:"tools"`
	Toolset      string          `json:"toolset"`
	FinishReason string          `json:"finish_reason"`
	Content      *string         `json:"content"`
	Call         *corpusCall     `json:"call"`
	Calls        []corpusCall    `json:"calls"`
	Expect       string          `json:"expect"`
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments"`
	Want         []corpusCall    `json:"want"`
	WantContent  *string         `json:"want_content"`
}

type corpusCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// text returns the arguments as the client passes them to its tool.
func (c corpusCall) text() string {
	var s string
	if json.Unmarshal(c.Arguments, &s) == nil {
		return s
	}
	return string(c.Arguments)
}

func finish(reason string) recovery.Finish {
	switch reason {
	case "tool_calls", "function_call":
		return recovery.FinishCalls
	case "content_filter":
		return recovery.FinishFilter
	}
	return recovery.Finish(reason)
}

// sameJSON compares JSON by meaning, numbers exactly.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	return reflect.DeepEqual(decoded(t, a), decoded(t, b))
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return exact(v)
}

// exact replaces numbers by fractions, which have a unique spelling.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, _ := new(big.Rat).SetString(v.String())
		return "number " + r.RatString()
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// TestMalformed judges malformed answers that were collected without knowledge of the
// rules. No repair may be wrong, a minimum share must be repaired, and each rule must be needed.
func TestMalformed(t *testing.T) {
	applied := map[string]bool{}
	for file, least := range map[string]int{"cases.jsonl": 100, "blind.jsonl": 97} {
		t.Run(file, func(t *testing.T) { judgeRows(t, file, least, applied) })
	}
	for _, rule := range []string{ruleFence, ruleTokens, ruleTags, ruleEncoded, ruleWrapper, ruleRepeated, ruleProse, ruleListOfOne, ruleEmpty, ruleParameters, rulePaths,
		ruleToNumber, ruleToBool, ruleToString, ruleToList, ruleFromList, ruleParseInside, ruleKeyAlias, ruleEnum, ruleDropNull,
		ruleTrailingComma, ruleComma, ruleColon, ruleSingleQuotes, ruleSmartQuotes, ruleKeys, ruleControls, ruleEscapes, ruleComments, ruleBrackets, ruleExtraBrackets,
		ruleNamePrefix, ruleNameNamespace, ruleNameSpelling, ruleNameNear, ruleLeak, ruleParallel, ruleJoined, ruleLanguageTag} {
		if !applied[rule] {
			t.Errorf("no case needs %s", rule)
		}
	}
}

// toolsets reads the tools that the rows of testdata/malformed refer to.
func toolsets(t *testing.T) (sets map[string]json.RawMessage) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "malformed", "toolsets.json"))
	if err == nil {
		err = json.Unmarshal(raw, &sets)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// judgeRows judges the rows of a file. At least least percent of those that expect a repair must get it. It adds the rules of
// right repairs to applied.
func judgeRows(t *testing.T, file string, least int, applied map[string]bool) {
	data, err := os.ReadFile(filepath.Join("testdata", "malformed", file))
	if err != nil {
		t.Fatal(err)
	}
	sets := toolsets(t)
	type tally struct{ mend, mended, ask, asked, pass, passed, wrong int }
	all, families := tally{}, map[string]*tally{}
	m := mender()
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r corpusCase
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Bytes()[:min(200, len(lines.Bytes()))], err)
		}
		family := r.Form
		f := families[family]
		if f == nil {
			f = &tally{}
			families[family] = f
		}
		got, detail := r.judge(t, m, sets)
		switch r.Expect {
		case "mend":
			f.mend++
		case "ask":
			f.ask++
		case "pass":
			f.pass++
		default:
			t.Fatalf("%s expects %q", r.ID, r.Expect)
		}
		switch {
		case got == "wrong", r.Expect != got && (r.Expect == "ask" || r.Expect == "pass"):
			f.wrong++
			t.Errorf("WRONG %s (%s) expects %s: %s %s", r.ID, family, r.Expect, got, detail)
		case r.Expect == "mend" && got == "mend":
			f.mended++
			for _, rule := range strings.Fields(detail) {
				applied[rule] = true
			}
		case r.Expect == "mend":
			t.Logf("missed %s (%s): %s %s", r.ID, family, got, detail)
		case got == "ask":
			f.asked++
		default:
			f.passed++
		}
	}
	names := make([]string, 0, len(families))
	for name := range families {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := families[name]
		t.Logf("%-28s mended %3d of %3d, asked %3d of %3d, passed %3d of %3d, wrong %d", name, f.mended, f.mend, f.asked, f.ask, f.passed, f.pass, f.wrong)
		all.mend, all.mended, all.ask, all.asked = all.mend+f.mend, all.mended+f.mended, all.ask+f.ask, all.asked+f.asked
		all.pass, all.passed, all.wrong = all.pass+f.pass, all.passed+f.passed, all.wrong+f.wrong
	}
	t.Logf("all: mended %d of %d, asked %d of %d, passed %d of %d, wrong %d", all.mended, all.mend, all.asked, all.ask, all.passed, all.pass, all.wrong)
	if all.mended*100 < all.mend*least {
		t.Errorf("mended %d of %d: less than %d %%", all.mended, all.mend, least)
	}
}

// judge returns "mend" if the repair is as expected, else "pass", "ask" or "wrong", with the details.
func (r corpusCase) judge(t *testing.T, m *Mender, sets map[string]json.RawMessage) (got, detail string) {
	t.Helper()
	tools := r.Tools
	if len(tools) == 0 {
		tools = sets[r.Toolset]
	}
	if len(tools) == 0 {
		t.Fatalf("%s has no tools", r.ID)
	}
	req := request(t, `,"tools":`+string(tools))
	d := recovery.Draft{Finish: finish(r.FinishReason)}
	if r.Content != nil {
		d.Text = *r.Content
	}
	list := r.Calls
	if r.Call != nil {
		list = append(list, *r.Call)
	}
	for i, c := range list {
		d.Calls = append(d.Calls, recovery.DraftCall{ID: "call_" + string(rune('a'+i)), Kind: transcript.KindFunction, Name: c.Name, Arguments: c.text()})
	}
	v := m.Mend(req, d)
	switch v.Judgement {
	case recovery.JudgePass:
		// A draft always has arguments as text. If the server sent an object, the writer
		// of the answer encodes it as a string.
		if r.Call != nil && bytes.HasPrefix(r.Call.Arguments, []byte("{")) && r.Expect == "mend" && sameJSON(t, []byte(d.Calls[0].Arguments), r.Arguments) {
			return "mend", ""
		}
		return "pass", ""
	case recovery.JudgeAsk:
		return "ask", v.Flaw.Problem
	}
	raw, _ := json.Marshal(v.Calls)
	detail = string(raw)
	for _, repair := range v.Repairs {
		detail += " " + repair.Rule
	}
	if r.Expect != "mend" {
		return "mend", detail
	}
	want := r.Want
	if len(want) == 0 {
		want = []corpusCall{{r.Name, r.Arguments}}
	}
	if len(v.Calls) != len(want) {
		return "wrong", detail
	}
	for i, w := range want {
		if v.Calls[i].Name != w.Name || !sameJSON(t, []byte(v.Calls[i].Arguments), w.Arguments) {
			return "wrong", detail
		}
	}
	if r.WantContent != nil {
		text := d.Text
		if v.Text != nil {
			text = *v.Text
		}
		if strings.TrimSpace(text) != strings.TrimSpace(*r.WantContent) {
			return "wrong", detail + " text " + text
		}
	}
	return "mend", detail
}

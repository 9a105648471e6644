package repair

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// outlineSchemas has schemas that an outline covers, and schemas that it does not.
var outlineSchemas = []string{
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`,
	`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x","a\\nb"]},"b":{"type":"number","minimum":3}},"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}}}}`,
	`{"properties":{"a":{"type":"object","additionalProperties":{"type":"integer"}},"b":true},"required":["a","c"]}`,
	`{"type":"object","additionalProperties":{"type":"string"},"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`,
	`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"string","maxLength":2},"b":{"type":"array","items":[{"type":"string"}]}}}`,
	`{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"enum":[1,"x",null]},"` + "\ufffd" + `":{"type":"string"}},"required":["b"],"minProperties":1}`,
	`{"type":"object","properties":{"` + "\ufffd" + `":{"type":"string"}}}`,
	`{"type":"object","additionalProperties":{"type":"integer"},"properties":{"a":{"type":"string"}}}`,
	`{"type":"array","items":{"type":"string"}}`,
	`{"type":"object","maxProperties":1}`,
	`true`, `{}`, `{"type":"object"}`,
}

// sampleValues are values of members in random arguments, valid and not.
var sampleValues = []string{`"x"`, `"a\nb"`, `"a\\nb"`, `"long text"`, `""`, `1`, `-0`, `1.0`, `2.5`, `1e2`, `-7`, `true`, `null`, `[]`, `{}`, `["x",1]`,
	`[{"b":true}]`, `[{"b":1},{}]`, `{"k":1}`, `{"b":"x"}`, `01`, `tru`, `[1,]`, ``, `"`}

// TestOutlines: what the outline accepts, the compiled schema accepts too.
func TestOutlines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	names := []string{"a", "b", "c", `\u0061`, "", "\xff", "d"}
	value := func() string { return sampleValues[r.IntN(len(sampleValues))] }
	certain, valid, known, whole := 0, 0, mender(), map[string]*schema{}
	check := func(raw, text string) {
		s := known.schema([]byte(raw), fullBudget())
		if whole[raw] == nil {
			whole[raw] = compile([]byte(raw))
			whole[raw].outline = nil
		}
		a := &argumentMender{schema: whole[raw], workLeft: fullBudget()}
		switch sure := s.certainlyAccepts(text); {
		case a.valid(text):
			valid++
			if sure {
				certain++
			}
		case sure:
			t.Fatalf("%s: %q is refused: %s", raw, text, a.problem)
		}
	}
	for range 60_000 {
		schema, text := outlineSchemas[r.IntN(len(outlineSchemas))], "{"
		for i := range r.IntN(4) {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprintf(`"%s":%s`, names[r.IntN(len(names))], value())
		}
		if text += "}"; r.IntN(20) == 0 {
			text = "\n" + value() + text[:r.IntN(len(text)+1)]
		}
		check(schema, text)
	}
	if valid < 10_000 || certain < valid/3 || certain == valid {
		t.Errorf("the outline accepts %d of %d valid texts", certain, valid)
	}
	weather := toolNamed(withTools(t, ""), "get_weather").Parameters
	for range 5000 {
		check(string(weather), damage(r, seeds[r.IntN(len(seeds))], r.IntN(3)))
	}
}

package configs

import (
	"bytes"
	"encoding/gob"
	"os"
	"reflect"
	"testing"

	"github.com/rebound-llm/rebound/recovery/rule"
)

// TestParsedRules: each parsed set is what its YAML files contain, with the needs of all patterns.
func TestParsedRules(t *testing.T) {
	for _, folder := range []string{"rules/upstream", "rules/tools", "rules/preferences"} {
		files, err := readFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		want := parsedRules{Source: hashOf(files)}
		if want.Set, err = parseRules(files); err != nil {
			t.Fatal(err)
		}
		want.Set.Needs = rule.NeedsOf(want.Set)
		if got, err := loadRules(folder); err == nil && reflect.DeepEqual(got, want.Set) {
			continue
		}
		if !*update {
			t.Errorf("%s.gob is older than the files in %s, or than package rule: -update writes it", folder, folder)
			continue
		}
		var data bytes.Buffer
		if err := gob.NewEncoder(&data).Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(folder+".gob", data.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package configs

import (
	_ "embed"
	"fmt"
	"reflect"
	"strings"

	"github.com/rebound-llm/rebound/recovery/annotate"
)

//go:embed chains.yaml
var chains string

// ChainsReference returns chains.yaml: the recovery chains, and what they are made of.
func ChainsReference() string { return chains }

// Chains returns the recovery chains without an operator's changes. The error
// is an [Errors] about the embedded file, which is part of the program.
func Chains() (annotate.Chains, error) {
	return ParseChains("chains.yaml", []byte(chains))
}

// ParseChains reads a complete set of recovery chains, as strictly as a
// configuration: every category has its chain, and every strategy all of its
// parts. The error is an [Errors]; nothing panics, whatever the text.
func ParseChains(name string, data []byte) (annotate.Chains, error) {
	r := &reader{name: name, places: map[string]place{}, broken: map[string]bool{}, fromEnv: map[string]string{}}
	r.lines = strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	n, at, err := parseText(data)
	if err != nil {
		r.reportAt(at, false, "", "%s", err)
		return nil, sortProblems(r.problems)
	}
	var out annotate.Chains
	if n != nil {
		r.decode(n, reflect.ValueOf(&out).Elem(), "")
	}
	r.reportAll("", out.Validate())
	if len(r.problems) > 0 {
		return nil, sortProblems(r.problems)
	}
	return out, nil
}

// checkChains reports what is wrong with an operator's changes at the key, as
// far as it depends on the chains that they change. Without changes nothing is
// read: that would be a fifth of the time to start.
func (r *reader) checkChains(key string, cfg annotate.Config) {
	if len(cfg.Chains) == 0 && len(cfg.Forbid) == 0 {
		return
	}
	base, err := Chains()
	if err != nil {
		r.report(key, "%s", fmt.Errorf("the recovery chains of the program cannot be read: %w", err))
		return
	}
	_, err = base.With(cfg)
	r.reportAll(key, err)
}

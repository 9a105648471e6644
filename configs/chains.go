package configs

import (
	_ "embed"
	"fmt"
	"reflect"

	"github.com/rebound-llm/rebound/recovery/annotate"
)

//go:embed chains.yaml
var chains string

// ChainsReference returns chains.yaml: the recovery chains with their steps.
func ChainsReference() string { return chains }

// Chains returns the built-in recovery chains. It does not validate them, because that would take almost half of the
// startup time; a test does. The error is an [Errors].
func Chains() (annotate.Chains, error) {
	var c annotate.Chains
	if r := newReader("chains.yaml"); !r.readInto(reflect.ValueOf(&c).Elem(), []byte(chains)) || len(r.problems) > 0 {
		return nil, sortProblems(r.problems)
	}
	return c, nil
}

// checkChains reports problems in an operator's changes to the chains. Without changes it does not read the chains, which
// saves a fifth of the startup time.
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

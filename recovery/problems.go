package recovery

import (
	"errors"
	"fmt"
)

// Problems collects what is wrong with a configuration. Each message begins with the key.
type Problems []error

// Check adds a problem if wrong is true.
func (p *Problems) Check(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// Add adds a problem.
func (p *Problems) Add(format string, args ...any) { p.Check(true, format, args...) }

// Err returns all problems as one joined error.
func (p Problems) Err() error { return errors.Join(p...) }

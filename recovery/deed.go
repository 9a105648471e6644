package recovery

import (
	"slices"
	"strings"
)

// Deeds is a set of what a call does that a person may have ruled out.
type Deeds uint16

// The deeds, by the names that rules and chains have for them.
const (
	Installs  Deeds = 1 << iota // puts software on the machine
	Deletes                     // removes files or records
	Elevates                    // acts as another user: sudo
	Reaches                     // goes to the network
	Creates                     // makes files
	Writes                      // makes or changes files
	Runs                        // runs commands or code
	Queries                     // touches a database
	Permits                     // changes permissions
	Publishes                   // commits, pushes, deploys
)

// deedNames are the names of deeds, in the order of their bits.
var deedNames = [...]string{"install", "delete", "elevate", "network", "create", "write", "run", "database", "permissions", "publish"}

// DeedNames lists the names of all deeds.
func DeedNames() []string { return slices.Clone(deedNames[:]) }

// DeedsOf is the deeds of these names; a name that is none counts for nothing.
func DeedsOf(names ...string) (out Deeds) {
	for i, n := range deedNames {
		if slices.Contains(names, n) {
			out |= 1 << i
		}
	}
	return out
}

// String lists the names.
func (d Deeds) String() string {
	var out []string
	for i, n := range deedNames {
		if d&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return strings.Join(out, ",")
}

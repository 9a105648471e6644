package recovery

import (
	"slices"
	"strings"
)

// Deeds is a set of kinds of actions that a person may rule out, such as installing software.
type Deeds uint16

// The deeds. Rules and chains use the names in deedNames.
const (
	Installs  Deeds = 1 << iota // puts software on the machine
	Deletes                     // removes files or records
	Elevates                    // acts as another user: sudo
	Reaches                     // uses the network
	Creates                     // creates files
	Writes                      // creates or changes files
	Runs                        // runs commands or code
	Queries                     // uses a database
	Permits                     // changes permissions
	Publishes                   // commits, pushes, deploys
)

// deedNames lists the names of deeds, in the order of their bits.
var deedNames = [...]string{"install", "delete", "elevate", "network", "create", "write", "run", "database", "permissions", "publish"}

// DeedNames lists the names of all deeds.
func DeedNames() []string { return slices.Clone(deedNames[:]) }

// DeedsOf returns the deeds with these names; it ignores unknown names.
func DeedsOf(names ...string) (out Deeds) {
	for i, n := range deedNames {
		if slices.Contains(names, n) {
			out |= 1 << i
		}
	}
	return out
}

// String returns the names.
func (d Deeds) String() string {
	var out []string
	for i, n := range deedNames {
		if d&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return strings.Join(out, ",")
}

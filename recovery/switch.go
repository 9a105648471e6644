package recovery

import (
	"errors"
	"slices"
	"time"
)

// Switch is a restriction that an operator has set at run time.
type Switch struct {
	Of   string `json:"of"`   // upstream, target, model or key
	Name string `json:"name"` // its name; UPSTREAM/MODEL for a target
	// Mode is the highest mode for its requests. With ModeDisabled, an upstream or a target gets no
	// requests.
	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since,omitzero"` // zero: from the configuration
}

// ModeDisabled keeps requests away from an upstream or a target.
const ModeDisabled Mode = "disabled"

// Check reports why a switch is invalid.
func (s Switch) Check() error {
	_, known := ParseMode(string(s.Mode))
	switch {
	case !slices.Contains([]string{"upstream", "target", "model", "key"}, s.Of):
		return errors.New("of: must be upstream, target, model or key")
	case s.Name == "" || len(s.Name) > 300:
		return errors.New("name: must have 1 to 300 bytes")
	case s.Mode == ModeDisabled && s.Of != "upstream" && s.Of != "target":
		return errors.New("mode: only an upstream or a target can be disabled; the mode of a model or key can be off, observe or annotate")
	case s.Mode != ModeDisabled && (!known || s.Mode == ModeAct):
		return errors.New("mode: must be disabled, off, observe or annotate")
	}
	return nil
}

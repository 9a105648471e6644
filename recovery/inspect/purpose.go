package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// achieves reports whether the successful call made did what the failed call was for: it works on one of the
// same objects or, if the failed call names none, with the same program or tool. A call that only reads does not
// achieve a change, and finding a file is not reading it.
func achieves(failed, made *trajectory.Call) bool {
	if made.Reads() && !failed.Reads() || locates(made) && !locates(failed) {
		return false
	}
	wanted, ran := objectsOf(failed)
	got, runs := objectsOf(made)
	if len(wanted) > 0 {
		return trajectory.AnyOf(wanted, got)
	}
	return trajectory.AnyOf(ran, runs)
}

// runsAgain reports whether two calls use the same program or tool.
func runsAgain(failed, made *trajectory.Call) bool {
	_, ran := objectsOf(failed)
	_, runs := objectsOf(made)
	return trajectory.AnyOf(ran, runs)
}

// maxObjects limits the objects of one call.
const maxObjects = 32

// objectsOf returns the base names of the files and other objects that a call works on, and its programs or tool.
func objectsOf(c *trajectory.Call) (objects, programs []string) {
	add := func(w string) {
		if w = path.Base(strings.ReplaceAll(strings.TrimSpace(w), `\`, "/")); len(w) > 1 && w != ".." && len(objects) < maxObjects {
			objects = append(objects, w)
		}
	}
	if c.Line() != "" {
		for _, v := range trajectory.Invocations(c.Line()) {
			if v.Prepares() {
				continue
			}
			programs = append(programs, v.Runs())
			for _, w := range v.Operands() {
				add(w)
			}
		}
		return objects, programs
	}
	for _, f := range c.Files() {
		add(f.Path)
	}
	if text := strings.TrimSpace(c.Arguments); len(objects) == 0 && len(text) <= maxAimed && strings.HasPrefix(text, "{") && gjson.Valid(text) {
		gjson.Parse(text).ForEach(func(_, v gjson.Result) bool {
			if v.Type == gjson.String && len(v.Str) <= 200 {
				add(v.Str)
			}
			return len(objects) < maxObjects
		})
	}
	return objects, []string{c.Tool}
}

// maxAimed limits the arguments that objectsOf searches, in bytes.
const maxAimed = 16 << 10

var (
	// locators are programs that find files, locating the first words of names of such tools.
	locators = []string{"find", "fd", "ls", "locate", "which", "whereis", "type", "tree", "stat", "file", "test"}
	locating = []string{"find", "glob", "list", "ls", "search", "grep", "tree", "locate"}
)

// locates reports whether a call finds where something is, rather than reading it.
func locates(c *trajectory.Call) bool {
	if c.Line() == "" {
		words := trajectory.NameWords(c.Tool)
		return len(words) > 0 && slices.Contains(locating, words[0])
	}
	_, by := objectsOf(c)
	return len(by) > 0 && !slices.ContainsFunc(by, func(p string) bool { return !slices.Contains(locators, p) })
}

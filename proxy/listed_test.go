package proxy

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/rebound-llm/rebound/recovery"
)

type listed map[string]int

func (l listed) ListWindow(t recovery.Target, tokens int) { l[t.Model] = tokens }

// TestListsAreNotKept: what is remembered of a list of models is its names and their windows,
// and no name that no model has.
func TestListsAreNotKept(t *testing.T) {
	windows := listed{}
	k := &Core{Windows: windows}
	list := `{"data":[{"id":"a","context_length":8192},{"id":"` + strings.Repeat("b", maxModel+1) + `","context_length":8192},{"id":"c","context_length":8192}]}`
	k.noteWindows("u", []byte(list))
	if len(windows) != 2 || windows["a"] == 0 || windows["c"] == 0 {
		t.Errorf("%d windows are known", len(windows))
	}
	var at []uintptr
	for name := range windows {
		at = append(at, uintptr(unsafe.Pointer(unsafe.StringData(name))))
	}
	if d := max(at[0], at[1]) - min(at[0], at[1]); int(d) == strings.Index(list, `c",`)-strings.Index(list, `a",`) {
		t.Error("the names are parts of the list")
	}
}

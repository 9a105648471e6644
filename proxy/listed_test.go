package proxy

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/rebound-llm/rebound/recovery"
)

type listed map[string]int

func (l listed) ListWindow(t recovery.Target, tokens int) { l[t.Model] = tokens }

// A window is read under each server's name for it; one that cannot be true is none.
func TestListedWindows(t *testing.T) {
	for model, want := range map[string]int{
		`"context_length":131072`: 131072, `"max_model_len":8192`: 8192, `"meta":{"n_ctx":2048,"n_ctx_train":8192}`: 2048, `"owned_by":"x"`: 0, `"context_length":12`: 0,
		`"context_length":"8192"`: 0,
	} {
		windows := listed{}
		k := &Core{Windows: windows}
		k.noteWindows("u", []byte(`{"data":[{"id":"a",`+model+`}]}`))
		if windows["a"] != want {
			t.Errorf("%s: %d, want %d", model, windows["a"], want)
		}
	}
}

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

package recoverytest

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery/transcript"
)

// Parse reads a request of a format; one that cannot be read fails the test.
func Parse[S ~string | ~[]byte](t testing.TB, raw S, format transcript.Format) *transcript.Body {
	t.Helper()
	b, err := transcript.Parse([]byte(raw), format, transcript.Limits{})
	if err != nil {
		t.Fatalf("%v in %.2000s", err, raw)
	}
	return b
}

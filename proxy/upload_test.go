package proxy

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// nowhere has no target for any model.
type nowhere struct{ Router }

func (nowhere) Candidates(string, transcript.API, string, uint64) []recovery.Choice { return nil }

// A body that is refused before it is read is not remembered.
func TestRefusedUploadIsForgotten(t *testing.T) {
	core, s := &Core{Router: nowhere{}, Engine: &recovery.Engine{Config: recovery.Defaults()}}, &Server{}
	core.prepare()
	req := httptest.NewRequest("POST", "/v1/audio/transcriptions", strings.NewReader("a sound"))
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	err := s.passthrough(echo.New().NewContext(req, httptest.NewRecorder()), core, client{passes: true})
	if e, ok := err.(*Error); !ok || e.Code != "no_upstream" || len(s.uploads.open) != 0 {
		t.Errorf("%v; %d bodies are still being read", err, len(s.uploads.open))
	}
}

package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

var update = flag.Bool("update", false, "write the golden files of streams anew")

// scene says what happens in a golden file: "first" is the upstream's answer, "then" the
// answer of another attempt behind it, and "out" all that the client gets.
type scene struct {
	Format  string // chat, responses, messages
	Whole   bool   // the answer is no stream
	Mend    *mendScene
	Hold    bool         // text is held, too
	Resume  recovery.Way // how "then" continues "first"
	Calls   bool         // "then" is asked for calls only
	Explain string       // id of the request whose answer gets the gateway's identity
	Compose *Composition // the gateway's own answer
	Ask     bool         // the judge asks for calls again
	Error   string       // ends the stream
}

type mendScene struct {
	Text   *string
	Calls  []recovery.DraftCall
	Finish recovery.Finish
}

func (m *mendScene) verdict(recovery.Draft) recovery.Verdict {
	return recovery.Verdict{Judgement: recovery.JudgeReplace, Text: m.Text, Calls: m.Calls, Finish: m.Finish, Repairs: []recovery.Repair{{Rule: "r"}}}
}

var goldenFormats = map[string]Format{"chat": Chat{}, "responses": Responses{}, "messages": Messages{}}

// play returns all that the client gets.
func (s *scene) play(t *testing.T, first, then []byte) string {
	x := newExchange()
	x.format = goldenFormats[s.Format]
	req := request(t, toolRequest)
	options := func(o *Options) {
		m := judging(nil)
		switch {
		case s.Mend != nil:
			m = judging(s.Mend.verdict)
		case s.Ask:
			m = asking(recovery.FlawArguments)
		}
		m.hold.Text = s.Hold
		o.Mender, o.Request = m, req
		o.Explain, o.ID, o.Ending = s.Explain != "", s.Explain, &Ending{}
	}
	if s.Compose != nil {
		c := *s.Compose
		c.Created = time.Unix(1_760_000_000, 0)
		stream := `true,"stream_options":{"include_usage":true}`
		if s.Whole {
			stream = "false"
		}
		own := recoverytest.Parse(t, `{"model":"m","stream":`+stream+`,"messages":[]}`, transcript.Chat)
		if broken := Compose(own, c, nil, x.options()).Deliver(context.Background()); broken != nil {
			t.Fatalf("%+v", broken)
		}
		return x.got()
	}
	if s.Whole {
		if broken := x.whole(string(first), options); broken != nil {
			t.Fatalf("%+v", broken)
		}
		return x.got()
	}
	broken := x.serve(&chunkedReader{rest: first}, options)
	if (broken == nil) == (s.Resume != "" || s.Calls || s.Error != "") {
		t.Fatalf("first: %+v\n%s", broken, x.got())
	}
	if s.Resume != "" || s.Calls {
		s.Ask = false
		if broken = x.serve(&chunkedReader{rest: then}, options, func(o *Options) {
			o.Resume = &recovery.Resume{Sent: x.sink.Sent(), Way: s.Resume, Calls: s.Calls}
		}); broken != nil {
			t.Fatalf("then: %+v\n%s", broken, x.got())
		}
	}
	if s.Error != "" {
		_ = x.sink.Write(Piece{Bytes: End(x.format, []byte(s.Error), x.sink)})
	}
	return x.got()
}

// TestGolden plays testdata/streams/*.txtar: what goes out in the place of what upstreams send.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/streams/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			part := map[string]*txtar.File{}
			for i := range a.Files {
				part[a.Files[i].Name] = &a.Files[i]
			}
			for _, n := range [...]string{"first", "then"} {
				if part[n] == nil {
					part[n] = &txtar.File{}
				}
			}
			var s scene
			d := json.NewDecoder(bytes.NewReader(part["scene"].Data))
			d.DisallowUnknownFields()
			if err := d.Decode(&s); err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = s.play(t, part["first"].Data, part["then"].Data) })
			if !strings.HasSuffix(got, "\n") {
				got += "\n"
			}
			if *update {
				out := part["out"]
				if out == nil {
					a.Files = append(a.Files, txtar.File{Name: "out"})
					out = &a.Files[len(a.Files)-1]
				}
				out.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if strings.Contains(name, "untouched") && !bytes.Equal(part["out"].Data, part["first"].Data) {
				t.Errorf("changed")
			}
			if part["out"] == nil {
				t.Errorf("without an expected answer (-update writes it); got\n%s", got)
			} else if got != string(part["out"].Data) {
				t.Errorf("differs (-update rewrites it)\n%s", diff.Diff("want", part["out"].Data, "got", []byte(got)))
			}
		})
	}
}

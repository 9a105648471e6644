package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/recoverytest"
	"github.com/rebound-llm/rebound/recovery/trajectory"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

func parse(t testing.TB, raw string) *transcript.Body {
	t.Helper()
	return recoverytest.Parse(t, raw, transcript.Chat)
}

func session(t testing.TB, name string) *transcript.Body {
	t.Helper()
	raw, err := os.ReadFile("testdata/trajectories/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

// What a person would say of the recorded sessions of SWE-agent.
func TestSessionsOfSWEAgent(t *testing.T) {
	for name, want := range map[string][]string{
		"swe-agent-crypto-babyencryption.json": {"9 none python decrypt.py", "17 syntax_error edit 2:2", "21 none edit 2:2", "25 none python decrypt.py"},
		"swe-agent-forensics-flash.json":       {"3 file_not_found strings flash_c8429a430278283c0e571baebca3d139.img | grep flag"},
		"swe-agent-rev-rock.json":              {"3 timeout ./rock"},
		"swe-agent-xml.json":                   {"17 syntax_error edit"},
		"swe-agent-calls.json":                 nil,
	} {
		b := session(t, name)
		var got []string
		all := trajectory.All(b)
		for _, r := range all {
			if f := Judge(r); f.Failed {
				command, _, _ := strings.Cut(r.Arguments, "\n")
				got = append(got, fmt.Sprintf("%d %s %s", f.Index, f.Category, command))
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
		answered := 0
		for i, m := range b.Messages() {
			if m.Role == transcript.RoleTool || trajectory.IsObservation(b, i) {
				answered++
			}
		}
		if answered != len(all) || len(all) == 0 {
			t.Errorf("%s: %d results, %d messages with one", name, len(all), answered)
		}
	}
}

// Refusals of a shop's rules are the conversation's subject: no note for them.
func TestSessionsOfTauBench(t *testing.T) {
	files, _ := filepath.Glob("testdata/trajectories/tau-*.json")
	if len(files) < 6 {
		t.Fatal(files)
	}
	for _, file := range files {
		for _, r := range trajectory.All(session(t, filepath.Base(file))) {
			if f := Judge(r); f.Category != recovery.CategoryNone {
				t.Errorf("%s: %+v", file, f)
			}
			if f := Judge(r); f.Failed != strings.HasPrefix(r.Content, "Error") {
				t.Errorf("%s: %+v", file, f)
			}
		}
	}
}

func TestSessionOfPi(t *testing.T) {
	var got []string
	for _, r := range trajectory.All(session(t, "pi-large-session-seg0-slice1.json")) {
		if f := Judge(r); f.Failed && f.Category != recovery.CategoryNone {
			got = append(got, fmt.Sprint(f.Index, " ", f.Category, " ", f.Confidence >= Threshold))
		}
	}
	if want := []string{"11 file_not_found true", "85 file_not_found true"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

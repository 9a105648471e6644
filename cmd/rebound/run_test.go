package main

import "testing"

// The summary counts what was done, not what was only observed, however the log is written.
func TestTally(t *testing.T) {
	var n tally
	for _, piece := range []string{
		`{"event":"stream_resumed"}` + "\n" + `{"event":"stream_`, `resumed"}` + "\n" + "no JSON\n",
		`{"event":"error_recovery_attempt","strategy":"wait"}` + "\n" + `{"event":"error_recovery_attempt","strategy":"resend","observed":true}` + "\n",
		`{"event":"guidance_injected","held_out":true}` + "\n" + `{"event":"guidance_injected","withheld":true}` + "\n" + `{"msg":"listening"}` + "\n",
		`{"event":"trajectory_compressed","original_tokens":50000,"compressed_tokens":29400}` + "\n" + `{"event":"trajectory_compressed","original_tokens":51000,"compressed_tokens":30600}` + "\n",
	} {
		if _, err := n.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := n.String(), "2 cut streams continued, 1 rate limit waited for, 2 histories shortened, about 41,000 tokens not sent"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

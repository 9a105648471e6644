package inspect

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// TestWordsAlone: whether a call failed, for results without an exit code, whose command is known. With the exit
// code in front nearly all are seen. testdata/README.md has the numbers of the first run.
func TestWordsAlone(t *testing.T) {
	for _, c := range []struct {
		round      string
		recall     float64 // with the words alone
		withCode   float64
		flagged    []string // successes that are called failures
		successful int
	}{
		{"round25", 0.97, 0.98, []string{"za0131", "za0132"}, 35},
		{"round26", 0.95, 0.98, []string{"zb0081", "zb0096"}, 38},
		{"round27", 0.98, 0.98, nil, 28},
		{"round28", 0.91, 0.96, nil, 60},
		{"round29", 0.9, 0.95, nil, 47},
		{"round30", 0.88, 0.95, nil, 39},
		{"round31", 0.77, 0.9, []string{"zf0100"}, 42},
		{"round32", 0.91, 0.95, nil, 112},
		{"round33", 0.93, 0.98, []string{"zg0116"}, 111},
		{"round34", 0.85, 0.95, []string{"zh0100"}, 73},
		{"round35", 0.97, 0.97, nil, 66},
		{"round36", 0.82, 0.82, nil, 67},
	} {
		var flagged []string
		failed, seen, coded, successes := 0, 0, 0, 0
		for _, r := range rows(t, c.round) {
			result := toolResult(r)
			result.Arguments = r.Args
			if r.Cmd != "" {
				args, _ := json.Marshal(map[string]string{"command": r.Cmd})
				result.Arguments = string(args)
			}
			is := Judge(result).Failed
			if !r.Failed {
				if successes++; is {
					flagged = append(flagged, r.ID)
				}
				continue
			}
			if failed++; is {
				seen++
			} else if *wrongRows == c.round {
				t.Logf("%s %s %q: %.300q", r.ID, r.Tool, r.Cmd, r.Content)
			}
			if r.Cmd != "" {
				result.Content = "Exit code 1\n" + result.Content
			}
			if Judge(result).Failed {
				coded++
			}
		}
		t.Logf("%s: %d failed, %d seen by their words (%.3f), %d with the exit code (%.3f); %d of %d successes called failures", c.round,
			failed, seen, ratio(seen, failed), coded, ratio(coded, failed), len(flagged), successes)
		if ratio(seen, failed) < c.recall || ratio(coded, failed) < c.withCode || successes != c.successful || !slices.Equal(flagged, c.flagged) {
			t.Errorf("%s: below the floor, or others than %q are called failures: %q", c.round, c.flagged, flagged)
		}
	}
}

// A short result whose sentence says that something failed is a failure of no kind, and no reason for a note.
func TestBriefRefusals(t *testing.T) {
	for _, c := range []struct {
		tool, command, content string
		failed                 bool
	}{
		{"bash", "cleat start .", "Container failed to start", true},
		{"bash", "", "Container failed to start", false}, // it may be what an unknown command read
		{"bash", "cat state.txt", "Container failed to start", false},
		{"bash", "lpush e 'the disk is not there'", "the disk is not there", false},
		{"bash", "./release.sh 1.2", "release.sh: version must look like vX.Y.Z, got 1.2", true},
		{"bash", "./deploy.sh", "==> building\n构建镜像失败 请检查", true},
		{"bash", "./backup.sh", "Folder out not found. Creating it...\nFolders checked.", false},
		{"bash", "ab -n 10 u", "Complete requests: 10\nFailed requests: 0", false},
		{"bash", "hugoenv hooks", "Usage: hugoenv hooks <command>", true},
		{"bash", "hugoenv hooks --help", "Usage: hugoenv hooks <command>", false},
		{"bash", "./setup.sh", "Please run as root", true},
		{"bash", "./setup.sh", "Run with sudo", true},
		{"bash", "objdump -f a", "objdump: /tmp/a: file format not recognized", true},
		{"scan", "", "File too large.", true},
		{"bash", "./mount.sh", "/dev/sdb never appeared", true},
		{"bash", "./deploy.sh", "Commit the changes before deploying.", true},
		{"bash", "./fetch a b", "2026/11/29 10:11:12 Unable to delete app", true},
		{"bash", "./fetch a", "2026/11/29 10:11:12 cannot reach the mirror, retrying", false},
		{"bash", "pip list | head -1", "Package Version\nERROR: Pipe to stdout was broken", false},
		{"search", "", "未找到与「猫」相关的内容。", false},
		{"loans", "", "You don't have any paid off loans", false},
		{"queue_push", "", "The job won't start: no free slots", true},
		{"order_pay", "", "Payment was declined", true},
		{"db_insert", "", "Row 12 is out of range", true},
		{"job_cancel", "", "Job 4 cancelled", false},
		{"build_get", "", "Build 4: failed", false},
		{"timer_set", "", "Timeout is 30 seconds", false},
		{"bash", "python3 rows.py | head -1", "row 1\nTraceback (most recent call last):\n  File \"rows.py\", line 2, in <module>\nBrokenPipeError: [Errno 32] Broken pipe", false},
		{"bash", "node formato.js", "El formato no es el esperado.", true},
		{"login", "", "Требуется авторизация", true},
		{"login", "", "로그인이 필요합니다", true},
		{"login", "", "Le champ nom est requis", true},
		{"list", "", "Aucun résultat", false},
		{"list", "", "問題はありませんでした", false},
		{"bash", "./gates.sh", "✗ gates FAILED — push aborted.", true},
		{"product_check", "", "unexpected status code: 500", true},
		{"bash", "./cache.sh", "no space left on device\nPruned the cache\n🎉 Model successfully cached for use!", false},
		{"bash", "./edge.sh", "case 4\nERROR (expected): cannot open the file", false},
		{"words", "", "No words found in the specified range", false},
		{"bash", "./train.sh", "reading a.csv\nERROR: no data in a.csv\nreading b.csv\n=== All runs completed ===", false},
		{"bash", "./status.sh", "The deployment is not ready", false}, // asking again is patience
		{"api_get", "", `{"message": "Build 4 is not ready"}`, false},
		{"wiki_get", "", "# Known problems\nThe exporter cannot handle empty files.", false},
		{"ask_expert", "", "The function is not defined in that file.", false},
		{"bash", "busted", "2 successes / 1 failure / 0 errors / 0 pending", true},
		{"bash", "msbuild", "========== Build: 3 succeeded, 0 failed, 1 up-to-date, 0 skipped ==========", false},
		{"bash", "flake8 a.py", "a.py:1:1: F401 'os' imported but unused", true},
		{"base_dir", "", "base_dir must be a string", true},
		{"list_jobs", "", "No jobs found", false},
		{"web_fetch", "", "The requested URL was not found on the server.", true},
		{"read_file", "a.txt", "The requested URL was not found on the server.", false},
		{"api_get", "", `{"message": "Department not found"}`, true},
		{"api_get", "", `{"id": 4, "message": "Department not found"}`, false},
	} {
		args := command(c.command)
		if c.tool == "read_file" {
			args = `{"path":"a.txt"}`
		}
		f := judge(c.tool, args, c.content)
		if f.Failed != c.failed || f.Failed && (f.Category != recovery.CategoryNone && f.Confidence >= Threshold) {
			t.Errorf("%s %q %q: %+v", c.tool, c.command, c.content, f)
		}
	}
}

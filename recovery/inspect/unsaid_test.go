package inspect

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// wordsRound is a round of results without an exit code, and what is seen of it.
type wordsRound struct {
	round      string
	recall     float64 // with the words alone
	withCode   float64
	flagged    []string // successes that are called failures
	successful int
}

var wordsAlone = []wordsRound{
	{"round25", 0.97, 0.98, []string{"za0131", "za0132"}, 35},
	{"round26", 0.95, 0.98, []string{"zb0081", "zb0096"}, 38},
	{"round27", 0.98, 0.98, nil, 28},
	{"round28", 0.91, 0.96, nil, 60},
	{"round29", 0.9, 0.95, nil, 47},
	{"round30", 0.88, 0.95, nil, 39},
	{"round31", 0.77, 0.9, []string{"zf0100"}, 42},
	{"round32", 0.91, 0.95, nil, 112},
	{"round33", 0.93, 0.98, nil, 111},
	{"round34", 0.85, 0.95, []string{"zh0100"}, 73},
	{"round35", 0.97, 0.97, nil, 66},
	{"round36", 0.82, 0.82, nil, 67},
	{"round37", 0.95, 0.95, []string{"zk0385"}, 135},
	{"round38", 0.88, 0.94, []string{"zk0042", "zk0220", "zk0362"}, 111},
	{"round39", 0.79, 0.79, []string{"zl0024"}, 21},
	{"round40", 0.94, 0.97, []string{"zm0043", "zm0110", "zm0113", "zm0207", "zm0243"}, 108},
	{"round41", 0.95, 0.97, nil, 113},
	{"round42", 0.92, 0.98, []string{"zm0652", "zm0653", "zm0701"}, 56},
}

// TestWordsAlone: whether a call failed, for results without an exit code, whose command is known. With the exit
// code in front nearly all are seen. testdata/README.md has the numbers of the first run.
func TestWordsAlone(t *testing.T) {
	list := rounds(t)
	for _, c := range wordsAlone {
		var flagged []string
		failed, seen, coded, successes := 0, 0, 0, 0
		for _, r := range list[c.round] {
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

// A tool that complains about the arguments of its call has failed, in whatever words; so has an editor that complains about its edit.
func TestArgumentsRefused(t *testing.T) {
	for _, c := range []struct {
		tool, arguments, content string
		failed                   bool
	}{
		{"replace_all", `{"ids":[],"note":"x"}`, "ids is empty - pass at least one", true},
		{"click", `{"uid":"4_12"}`, "This uid is from a stale snapshot. Take another one.", true},
		{"tag_set", `{"name":"v1.2"}`, "v1.2 is beyond the retention of this project", true},
		{"get_tag", `{"name":"v1.2"}`, "v1.2 is stale", false}, // the answer
		{"bash", command("cd /srv/app && git log -1"), "/tmp/run4.sh: line 1: cd: /srv/app: No such file or directory", true},
		{"tag_set", `{"name":"v1.2"}`, "v1.2 was set, only for this project", false},
		{"tag_set", `{"name":"v1.2"}`, "No tag had to be changed, v1.2 is not required", false},
		{"tag_set", `{"name":"v1.2"}`, `{"tag": "v1.2", "only": true}`, false},
		{"search_posts", `{"query":"timeout not handled"}`, "2 posts about timeout not handled", false},
		{"search_posts", `{"max_age":"x"}`, "max_age must be a number", true},
		{"write", `{"path":"a.md"}`, "Planning phase: files are locked until the plan is approved.", true},
		{"edit", `{"path":"a.md"}`, "Edit rejected: 3 anchors do not match.\n1|a\n2|b\n3|c\n4|d\n5|e", true},
		{"edit", `{"path":"a.md"}`, "a.md has been edited. 2 errors were there before.", false},
		{"write", `{"path":"not_found.py"}`, "Wrote not_found.py", false},
		{"run_panel", `{"panel":4}`, "Panel target not available", true},
		// GitHub Copilot CLI 1.0.102 and qwen-code 0.24
		{"edit", `{"path":"/w/a.py","old_str":"y = 2","new_str":"y = 3"}`, "No match found: old_str not found in /w/a.py; no changes made; you might want to try again with correct old_str", true},
		{"edit", `{"path":"/w/a.py","old_str":"x","new_str":"z"}`, "Ambiguous match for old_str in /w/a.py: pattern starting with \"x\" matched at lines 1, 2. No changes made; try again with a more specific old_str.", true},
		{"glob", `{"pattern":"*","paths":"/nowhere"}`, "Permission denied because no interactive user response was available. Retry in an interactive session so the user can approve it, or try an alternative that does not require this permission.", true},
		{"bash", `{"command":"curl -s http://127.0.0.1:1/","description":"d"}`, "\n<shellId: 8 completed with exit code 7>", true},
		{"bash", `{"command":"grep -rn error: src","description":"d"}`, "src/a.go:1: error: \n<shellId: 8 completed with exit code 0>", false},
		{"read_bash", `{"shellId":"77","delay":1}`, "shellId: 77 not found or was never created. Please supply a valid shell ID.", true},
		{"read_agent", `{"agent_id":"nope"}`, "No agent found with agent_id: nope. The agent may have been cleared or never existed.", true},
		{"notebook_edit", `{"notebook_path":"/w/n.ipynb","new_source":"x","edit_mode":"replace","cell_id":"1"}`, "Notebook file not found: /w/n.ipynb", true},
		{"read_file", `{"file_path":"/w/src"}`, "Path is a directory, not a file: /w/src", true},
		{"read_file", `{"file_path":"/w/notes.txt"}`, "The path is a directory, not a file.", false},
		{"run_shell_command", `{"command":"make","directory":"/nowhere"}`, "Directory '/nowhere' is not within any of the registered workspace directories.", true},
		{"tool_call", `{"name":"nothing","arguments":{}}`, "[tool_call bridge refused] Deferred tool \"nothing\" is not registered in this session. Run tool_search again to inspect the available tools.", true},
		{"bash", `{"cmd":"ls"}`, "The bash tool was called with invalid arguments: SchemaError(Missing key\n  at [\"command\"]).\nPlease rewrite the input so it satisfies the expected schema.", true}, // opencode 1.18
		{"read", `{"path":"a.py","offset":500}`, "Offset 500 is beyond end of file (3 lines total)", true},                                                                                              // pi 0.73
		{"read", `{"path":"a.py"}`, "Offsets are beyond the scope of this text, which only has 3 lines.", false},
	} {
		if f := judge(c.tool, c.arguments, c.content); f.Failed != c.failed {
			t.Errorf("%s %s %q: %+v", c.tool, c.arguments, c.content, f)
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
		{"bash", "./reindex.sh; echo done", "The index is not writable\ndone", true}, // the command says done in any case
		{"bash", "test -w a && echo 'a is not there'; echo '--- end ---'", "a is not there\n--- end ---", false},
		{"bash", "./reindex.sh; echo '--- end'", "Two files stale, so this is for later.", true}, // it did not even say what it says
		{"bash", "./reindex.sh; echo '--- end'", "Two files stale, so this is for later.\n--- end", false},
		{"bash", "./reindex.sh; echo '--- end'", "Command running in background with ID: b1", false},
		{"bash", "bin/test a.py 2>&1 | tail -3", "KeyError: 'zero'", true}, // a script of the project, not the shell's test
		{"bash", "cat run4.log", "/tmp/run4.sh: line 1: cd: /srv/app: No such file or directory", false},
		{"bash", "git diff main a.md || git diff master a.md", "fatal: bad revision 'main'\ndiff --git a/a.md b/a.md\n+x", false},
		{"bash", `python3 -c "print(status.phrase)"`, "Not Found", false}, // code prints what it was asked for
		{"bash", "pip install a | tail -2", "note: This error originates from a subprocess, and is likely not a problem with pip.", true},
		{"bash", "pip install a | tail -2", "Defaulting to user installation because normal site-packages is not writeable\nRequirement already satisfied: a", false},
		{"bash", "git checkout -b a", "error: failed to encode 'b.inc' from latin-1 to UTF-8\nSwitched to a new branch 'a'", false},
		{"bash", "ls", "The sandbox is not running yet, start it first", true}, // no list of files
		{"bash", "make", "Command did not complete within its 120s timeout and was moved to the background (ID: b2).", false},
		{"plot_add", "", "No data source configured.", true},
		{"list_plots", "", "No data source configured.", false},
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

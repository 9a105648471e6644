package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
)

// What servers, toolkits and programs sent that were called wrongly, or about errors of something else. The results have no
// mark of a failure: most chat formats lose it.
func TestServersAndPrograms(t *testing.T) {
	for _, c := range []struct {
		tool, arguments, content string
		failed                   bool
		category                 recovery.Category // if the failure has one
	}{
		// The shell says so itself, whatever it says.
		{"bash", command("fg"), "bash: line 1: fg: no job control", true, ""},
		{"bash", command("type nope"), "bash: line 1: type: nope: not found", true, ""},
		{"bash", command("docker run x"), "bash: line 1: warning: setlocale: LC_ALL: cannot change locale (C.UTF-8)\nok", false, ""},
		{"bash", command("bash -ic 'echo 4'"), "bash: cannot set terminal process group (-1): Inappropriate ioctl for device\nbash: no job control in this shell\n4", false, ""},
		// The word for an error in another frame.
		{"run_command", command("ls && rm x"), "Security violation: Shell operator '&&' is not supported. Set ALLOW_SHELL_OPERATORS=true to enable.", true, recovery.InvalidArguments},
		{"git_add", `{"files":["a.py"]}`, "Cmd('git') failed due to: exit code(128)\n  cmdline: git add -- a.py\n  stderr: 'fatal: pathspec 'a.py' did not match any files'", true, ""},
		{"bash", command("pip-audit -r a.txt"), "ERROR:pip_audit._cli:invalid requirements input: a.txt", true, recovery.InvalidArguments},
		{"bash", command("python3 a.py"), "ERROR:app.db:lost the connection\nINFO:app:connected", false, ""},
		{"bash", command("pm2 restart a"), "Use --update-env to update environment variables\n[PM2][ERROR] Process or Namespace a not found", true, ""},
		{"bash", command("bc <<< '1/0'"), "Runtime error (func=(main), adr=3): Divide by zero", true, ""},
		{"bash", command("pre-commit run"), "An error has occurred: FatalError: git failed. Is it installed, and are you in a Git repository directory?\nCheck the log at /w/pre-commit.log", true, ""},
		{"bash", command("wget http://a.example/b"), "HTTP request sent, awaiting response... 404 Not Found\n2026-11-30 10:59:11 ERROR 404: Not Found.", true, ""},
		{"list_channels", "{}", "<urlopen error [Errno -2] Name or service not known>", true, recovery.NetworkError},
		// Counts of what was found.
		{"bash", command("webpack"), "./src/app.mjs 46 bytes [built] [code generated]\n\nERROR in ./src/app.mjs 1:0-29\nModule not found: Error: Can't resolve './a.mjs' in '/w/src'\nresolve './a.mjs' in '/w/src'\n" +
			"  using description file: /w/package.json (relative path: ./src)\n    no extension\n      /w/src/a.mjs doesn't exist\n    as directory\n      /w/src/a.mjs doesn't exist\n\nwebpack 5.113.0 compiled with 1 error in 583 ms", true, recovery.FileNotFound},
		{"bash", command("webpack"), "./src/ok.mjs 51 bytes [built] [code generated]\nwebpack 5.113.0 compiled successfully in 434 ms", false, ""},
		{"bash", command("pyright a.py"), "/w/a.py\n  /w/a.py:1:10 - error: Type \"Literal['a']\" is not assignable to declared type \"int\"\n1 error, 0 warnings, 0 informations", true, ""},
		{"bash", command("pyright a.py"), "0 errors, 0 warnings, 0 informations", false, ""},
		{"bash", command("oxlint a.mjs"), "  x Unexpected token\n   ,-[a.mjs:1:12]\n 1 | const a = {;\n   :            ^\n   `----\n\nFound 0 warnings and 1 error.\nFinished in 21ms on 1 file with 96 rules using 2 threads.", true, ""},
		{"bash", command("oxlint a.mjs"), "Found 0 warnings and 0 errors.\nFinished in 12ms on 1 file with 96 rules using 2 threads.", false, ""},
		{"bash", command("markdownlint a.md"), "a.md:1:1 error MD018/no-missing-space-atx No space after hash on atx style heading [Context: \"#Title\"]", true, ""},
		{"bash", command("ava a.mjs"), "  Uncaught exception in a.mjs\n\n  TypeError: x is not a function\n      at run (node:internal/modules/esm/resolve:873:9)\n      at main (node:internal/modules/esm/resolve:946:18)\n\n" +
			"  ✘ a.mjs exited with a non-zero exit code: 1\n  ─\n\n  1 uncaught exception", true, ""},
		{"run_query", `{"query":"select 'failed' as status, 3 as n"}`, "status,n\nfailed,3", false, ""},
		// The status of an answer, and the failure of git's own fetch, are no trouble of the network.
		{"fetch", `{"url":"http://a.example/b"}`, "Failed to fetch http://a.example/b - status code 500", true, ""},
		{"git_fetch", `{"remote":"a"}`, "Error: Git fetch failed: Exit Code: 128\nStderr: fatal: 'a' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n" +
			"Please make sure you have the correct access rights\nand the repository exists.\n\nStdout: ", true, ""},
		// The call's own text: what code prints, an echo.
		{"run-code", `{"code":"print('Error: none found')","languageId":"python"}`, "Error: none found", false, ""},
		{"run-code", `{"code":"import sys\nsys.exit('Error: none found')","languageId":"python"}`, "Error: none found", true, ""},
		{"search_docs", `{"query":"permission denied"}`, "Error: permission denied", true, recovery.PermissionDenied},
		{"echo", `{"message":"Error: file not found"}`, "Echo: Error: file not found", false, ""},
	} {
		f := judge(c.tool, c.arguments, c.content)
		if c.category == "" {
			c.category = recovery.CategoryNone
		}
		if f.Failed != c.failed || f.Failed && f.Category != c.category {
			t.Errorf("%s %s %q: %+v", c.tool, c.arguments, c.content, f)
		}
	}
	one := judge("git_fetch", `{"remote":"a"}`, "Error: Git fetch failed: Exit Code: 128\nStderr: fatal: no path\n\nStdout: ")
	two := judge("git_fetch", `{"remote":"a"}`, "Error: Git fetch failed: Exit Code: 128\nStderr: fatal: bad name\n\nStdout: ")
	if one.Fingerprint == two.Fingerprint {
		t.Errorf("the same failure: %q, %q", one.Line, two.Line)
	}
}

package inspect

import (
	"testing"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// toldRow is a result, its tool and the command that it ran, "" for none.
type toldRow struct{ tool, command, content string }

func command(c string) string {
	if c == "" {
		return ""
	}
	return `{"command":` + string(transcript.String(c)) + `}`
}

// Failures in the words of agents, shells and builders, and what looks like them.
func TestWordsOfAgentsAndShells(t *testing.T) {
	for category, list := range map[recovery.Category][]toldRow{
		recovery.InvalidArguments: {
			{"write_to_file", "", "[write_to_file for 'a.ts'] Result:\nThe tool execution failed with the following error:\n<error>\nMissing value " +
				"for required parameter 'content'. Please retry with complete response.\n</error>\n<environment_details>\n# Current Mode\ncode\n</environment_details>"},
			{"replace_in_file", "", "The tool execution failed with the following error:\n<error>\nThe SEARCH block:\nx = 1\n...does not match " +
				"anything in the file.\n\n<file_content path=\"a.py\">\ny = 2\n</file_content>\n</error>"},
			{"editor", "", "Error: Tool 'editor' encountered a problem: Editor.execute() got an unexpected keyword argument 'file'"},
			{"lookup", "", "Error executing tool lookup: LookupTool._run() missing 1 required positional argument: 'query'"},
			{"str_replace_editor", "", "ERROR:\nInvalid `view_range` parameter: [90, 20]. Its second element should be greater. It should be a list of two integers."},
			{"str_replace_editor", "", "ERROR:\nUnrecognized command append. The allowed commands for the editor tool are: view, create, insert"},
			{"powershell", "", "Get-ChildItem : A parameter cannot be found that matches parameter name 'Recurs'.\nAt line:1 char:15\n+ " +
				"Get-ChildItem -Recurs\n+               ~~~~~~~\n    + CategoryInfo          : InvalidArgument: (:) [Get-ChildItem], " +
				"ParameterBindingException\n    + FullyQualifiedErrorId : NamedParameterNotFound,Microsoft.PowerShell.Commands.GetChildItemCommand"},
			{"SEARCH/REPLACE", "", "# 2 SEARCH/REPLACE blocks failed to match!\n\n## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in b.py"},
			{"read_file", "", "File path must be absolute, but was relative: web/routes.ts. You must provide an absolute path."},
			{"bash", "git switch -c", wrapped(129, "error: switch `c' requires a value")},
			{"ask_followup_question", "", "The tool execution failed with the following error:\n<error>\nFailed to parse ask_followup_question arguments: Unexpected end\n</error>"},
		},
		recovery.FileNotFound: {
			{"run_command", "Get-Content C:\\a\\b.log", "Created At: 2026-06-13T04:02:25Z\nCompleted At: 2026-06-13T04:02:29Z\n\n\t\t\t\tThe command failed with exit code: 1\n\t\t\t\tOutput:\n\t\t\t\tGet-Content : Cannot find path 'C:\\a\\b.log' because it does not exist.\r\n" +
				"    + CategoryInfo          : ObjectNotFound: (C:\\a\\b.log:String) [Get-Content], ItemNotFoundException\r\n    + FullyQualifiedErrorId : PathNotFound,Microsoft.PowerShell.Commands.GetContentCommand\r\n"},
			{"read", "", "File not found: /srv/app/src/Inputs.tsx\n\nDid you mean one of these?\n/srv/app/src/Input.tsx\n/srv/app/src/InputGroup.tsx\n/srv/app/src/InputLabel.tsx\n/srv/app/src/InputMask.tsx"},
			{"read_file", "", "[read_file for 'src/app.ts'] Result:\nThe tool execution failed with the following error:\n<error>\nError reading file: ENOENT: no such file or directory, open '/srv/src/app.ts'\n</error>"},
			{"execute_command", "Get-Content .\\a.log", "[execute_command for 'Get-Content .\\a.log'] Result:\nCommand executed.\nOutput:\nGet-Content : Cannot find path 'C:\\a.log' because it does not exist.\nAt line:1 char:1\n+ Get-Content .\\a.log\n+ ~~~~~~~~~~~~~~~~~~~\n    + CategoryInfo          : ObjectNotFound: (C:\\a.log:String) [Get-Content], ItemNotFoundException\n    + FullyQualifiedErrorId : PathNotFound,Microsoft.PowerShell.Commands.GetContentCommand"},
			{"powershell", "", "Set-Location : Der Pfad \"C:\\weg\" kann nicht gefunden werden.\nIn Zeile:1 Zeichen:1\n+ Set-Location C:\\weg\n+ ~~~~~~~~~~~~~~~~~~~\n    + CategoryInfo          : ObjectNotFound: (C:\\weg:String) [Set-Location], ItemNotFoundException\n    + FullyQualifiedErrorId : PathNotFound,Microsoft.PowerShell.Commands.SetLocationCommand"},
			{"bash", "", wrapped(1, "#9 [4/7] COPY conf/app.ini /etc/app.ini\n#9 ERROR: failed to calculate checksum of ref a1b2::c3: \"/conf/app.ini\": not found")},
			{"bash", "", "Invalid project directory provided, no such directory: /srv/web/8080"},
			{"LS", "", "/srv/app/nope does not exist"},
			{"bash", "python -m pytest tests/test_linker.py", "ERROR: file or directory not found: tests/test_linker.py\n\nno tests ran in 0.01s"},
			{"bash", "find build -name '*.o'", wrapped(1, "find: ‘build’: No such file or directory")},
		},
		recovery.CommandNotFound: {
			{"run_command", "", "Created At: 2026-06-13T04:02:25Z\nCompleted At: 2026-06-13T04:02:29Z\n\n\t\t\t\tThe command failed with exit code: 127\n\t\t\t\tOutput:\n\t\t\t\tzsh:1: command not found: acme\n\n"},
			{"bash", "", wrapped(101, "   Compiling libc v0.2.71\nerror: linker `cc` not found\n  |\n  = note: No such file or directory (os error 2)\n\nerror: could not compile `libc` (build script) due to 1 previous error")},
			{"bash", "find . -name '*.py' -exec black {} +", wrapped(1, "find: ‘black’: No such file or directory")},
			{"bash", "find . -name '*.py' -exec black {} \\;", "find: ‘black’: No such file or directory"},
			{"bash", `perl -e 'system("pandoc a.md") == 0 or die "pandoc failed: $!"'`, wrapped(2, "pandoc failed: No such file or directory")},
			{"bash", "", wrapped(1, "gcc: fatal error: cannot execute ‘cc1plus’: execvp: No such file or directory\ncompilation terminated.")},
			{"bash", "", wrapped(1, "collect2: fatal error: cannot find ‘ld’\ncompilation terminated.")},
			{"bash", "", wrapped(1, "building 'ext' extension\nerror: command 'gcc' failed: No such file or directory")},
			{"bash", "", wrapped(1, "gyp ERR! build error\ngyp ERR! stack Error: not found: make\ngyp ERR! not ok")},
			{"bash", "", wrapped(1, "configure: error: no acceptable C compiler found in $PATH\nSee `config.log' for more details")},
			{"bash", "", wrapped(127, "Error: the command flask (from flask) could not be found within PATH.")},
			{"bash", "", wrapped(1, "error Command \"tsx\" not found.")},
			{"bash", "", wrapped(1, "Command not found: ruff")},
			{"powershell", "", "terraform : Die Benennung \"terraform\" wurde nicht erkannt.\nIn Zeile:1 Zeichen:1\n+ terraform plan\n+ ~~~~~~~~~\n  " +
				"  + CategoryInfo          : ObjectNotFound: (terraform:String) [], CommandNotFoundException\n    + FullyQualifiedErrorId : CommandNotFoundException"},
			{"bash", "", wrapped(0, "bash: line 1: sponge: command not found\nexit=127")},
		},
		recovery.PermissionDenied: {
			{"read_file", "", "[read_file for 'k.pem'] Result:\nThe tool execution failed with the following error:\n<error>\nAccess to k.pem is " +
				"blocked by the .rooignore file settings. You must try to continue in the task without using this file, or ask the user to update the .rooignore file.\n</error>"},
			{"bash", "wget -q -O /etc/a.json http://a.example.com/; echo \"wget exit $?\"", wrapped(0, "/etc/a.json: Permission denied\nwget exit 3")},
			{"powershell", "", "Remove-Item : Zugriff nicht möglich.\nIn Zeile:1 Zeichen:1\n+ Remove-Item C:\\a\n    + CategoryInfo          : " +
				"PermissionDenied: (C:\\a:FileInfo) [Remove-Item], UnauthorizedAccessException\n    + FullyQualifiedErrorId : " +
				"RemoveFileSystemItemUnAuthorizedAccess,Microsoft.PowerShell.Commands.RemoveItemCommand"},
			{"bash", "", wrapped(128, "ERROR: Permission to octo/web.git denied to dev.\nfatal: Could not read from remote repository.")},
		},
		recovery.ToolTimeout: {
			{"bash", "Rscript -e 'setTimeLimit(elapsed=0.2); repeat {}'", "Error in repeat { : reached elapsed time limit\nExecution halted"},
			{"bash", "", "<error>\nThe last command <command>cat <<EOF > a.sh\nsleep 900\nEOF\nsh a.sh</command> timed out and has been killed.\nThe " +
				"output of the command was:\n<output>\nPermission denied once\n</output>\nPlease try another command and make sure to avoid those requiring interactive input.\n</error>"},
			{"bash", "", "The command 'python serve.py\n' was cancelled because it took more than 30 seconds. Please try a different command that completes more quickly."},
			{"terminal", "", `{"content": [{"type": "text", "text": "Resolving 3 packages"}], "is_error": false, "exit_code": -1, "timeout": false, "` +
				`metadata": {"exit_code": -1, "suffix": "\n[The command timed out after 120.0 seconds. You may wait longer to see additional output by sending empty command '']"}}`},
			{"run_shell_command", "", "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output."},
			{"execute_command", "", "The command was terminated after exceeding a user-configured 30s timeout. Do not try to re-run the command."},
			{"python_interpreter", "", "Error: Code execution exceeded the maximum execution time of 30 seconds"},
			{"powershell", "", "Invoke-WebRequest : Das Zeitlimit ist um.\n    + CategoryInfo          : OperationTimeout: (:) [Invoke-WebRequest], TimeoutException\n    + FullyQualifiedErrorId : X"},
		},
		recovery.ToolRateLimited: {
			{"search", "", "ddg.exceptions.SearchException: _get_url() https://links.example.com/d.js SearchException: Ratelimit"},
			{"bash", "curl -s http://a.example.com/doc.md", wrapped(0, "<html>\n<head><title>429 Too Many Requests</title></head>\n<body>\n<center><h1>429 Too Many Requests</h1></center>\n</body>\n</html>")},
			{"fetch", "", "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Too Many Requests</title></head><body>Slow down.</body></html>"},
			{"bash", "", wrapped(254, "An error occurred (SlowDown) when calling the PutObject operation: Please reduce your request rate.")},
			{"bash", "", wrapped(1, "botocore.errorfactory.ProvisionedThroughputExceededException: An error occurred")},
			{"fetch", "", "Failed to fetch https://a.example.com/prices - status code 429"},
		},
		recovery.DiskFull: {
			{"bash", "", wrapped(128, "fatal: sha1 file '.git/index.lock' write error. Out of diskspace")},
			{"execute_command", "", "[execute_command for 'unzip -o -q a.zip'] Result:\nCommand executed.\nOutput:\nout/a.csv:  write error (disk " +
				"full?).  Continue? (y/n/^C) \nwarning:  out/a.csv is probably truncated\n"},
			{"bash", "", wrapped(1, "OSError: [WinError 112] There is not enough space on the disk")},
			{"bash", "", wrapped(1, "fallocate: insufficient free space on /srv/data")},
		},
		recovery.SyntaxError: {
			{"bash", "", wrapped(1, "╷\n│ Error: Missing newline after argument\n│ \n│   on main.tf line 4, in locals:\n│    4:   a = 1 b = 2\n│ \n│ An argument definition must end with a newline.\n╵")},
			{"bash", "", wrapped(1, "src/A.java:12: error: illegal character: '#'\n  int a# = 1;\n       ^\n1 error")},
			{"bash", "", wrapped(1, "a.c:3:5: error: stray ‘\\302’ in program\n    3 |     int x;")},
			{"bash", "", wrapped(1, "app/Main.hs:7:3: error: parse error on input ‘where’")},
		},
		recovery.NetworkError: {
			{"bash", "", wrapped(128, "ssh: connect to host git.example.com port 22: Connection refused\nfatal: Could not read from remote repository.")},
			{"bash", "", wrapped(128, "Connection closed by 198.51.100.7 port 22\nfatal: Could not read from remote repository.")},
			{"fetch", "", "Failed to fetch https://a.example.com/: getaddrinfo ENOTFOUND a.example.com"},
			{"powershell", "", "Test : geht nicht\n    + CategoryInfo          : ConnectionError: (a:String) [Enter-PSSession], " +
				"PSRemotingTransportException\n    + FullyQualifiedErrorId : CannotConnect,PSSessionStateBroken"},
		},
	} {
		for _, a := range list {
			if f := judge(a.tool, command(a.command), a.content); f.Category != category || f.Confidence < Threshold {
				t.Errorf("%q: %s %.2f %s %q, want %s", a.content, f.Category, f.Confidence, f.Rule, f.Line, category)
			}
		}
	}
}

// Failures of other kinds, and successes, that look like those.
func TestNoneOfTheWordsOfAgents(t *testing.T) {
	for _, a := range []toldRow{
		{"bash", "", wrapped(128, "fatal: 'upstream' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n"+
			"Please make sure you have the correct access rights\nand the repository exists.")},
		{"bash", "", wrapped(128, "ERROR: Repository not found.\nfatal: Could not read from remote repository.")},
		{"bash", "", wrapped(128, "fatal: invalid upstream 'feature/x'")},
		{"bash", "", wrapped(128, "fatal: invalid reference: feature/x")},
		{"fetch", "", "Failed to fetch https://a.example.com/old - status code 404"},
		{"fetch", "", "Error: Failed to fetch https://a.example.com/old: HTTP 410 Gone"},
		{"download_file", "", "Failed to download https://a.example.com/x.zip (404)"},
		{"bash", "find . -exec black {} +", wrapped(1, "error: cannot format a.py: not today")},
		{"powershell", "", "Get-Process : Cannot find a process with the name \"web\".\n    + CategoryInfo          : ObjectNotFound: " +
			"(web:String) [Get-Process], ProcessCommandException\n    + FullyQualifiedErrorId : NoProcessFoundForGivenName,Microsoft.PowerShell.Commands.GetProcessCommand"},
		{"powershell", "", "Import-Module : The specified module 'Az' was not loaded because no valid module file was found in any module " +
			"directory.\n    + CategoryInfo          : ResourceUnavailable: (Az:String) [Import-Module], Exception\n    + FullyQualifiedErrorId : " +
			"Modules_ModuleNotFound,Microsoft.PowerShell.Commands.ImportModuleCommand"},
		{"mcp__a__list", "", "Error: result (113,673 characters across 1 line) exceeds maximum allowed tokens. Output has been saved to /srv/results/a.txt.\nFormat: Plain text\n" +
			"- If after a few attempts you cannot read the file (file not found, lines too long for Read's offset/limit, no shell access), STOP retrying."},
		{"Write", "", "Claude requested permissions to write to /srv/app/ci.yml, but you haven't granted it yet."},
		{"execute_command", "", "[execute_command for 'rm -rf build'] Result:\nThe user denied this operation."},
		{"python_repl", "", `NameError("name 'total' is not defined")`},
		{"run_shell_command", "", `{"run_shell_command_response": {"error": "x.startsWith is not a function"}}`},
	} {
		if f := judge(a.tool, command(a.command), a.content); !f.Failed || f.Category != recovery.CategoryNone && f.Confidence >= Threshold {
			t.Errorf("%q: %v %s %.2f %s %q", a.content, f.Failed, f.Category, f.Confidence, f.Rule, f.Line)
		}
	}
	for _, a := range []toldRow{
		{"bash", "", "caught: disk full"},
		{"run_command", "python shift.py", "Created At: 2026-06-13T04:02:25Z\nCompleted At: 2026-06-13T04:02:29Z\n\n\t\t\t\tThe command completed successfully.\n\t\t\t\tOutput:\n\t\t\t\tBefore: dx=1.0m\nError: dx=-22.7m, dy=-1.1m, total=22.7m\n\n"},
		{"edit", "", "Edit applied successfully.\n\nLSP errors detected in this file, please fix:\n<diagnostics file=\"/w/a.tsx\">\nERROR [3:5] Property 'connector' does not exist on type 'JSX.IntrinsicElements'.\n" +
			"ERROR [8:7] Type '{ name: string; pins: number; }' is not assignable to type 'ChipProps'.\n  Property 'pins' does not exist on type 'ChipProps'.\n</diagnostics>"},
		{"apply_patch", "", "Success. Updated the following files:\nM w/a.tsx\n\nLSP errors detected in w/a.tsx, please fix:\n<diagnostics file=\"/w/a.tsx\">\nERROR [1:20] Cannot find module 'y' or its corresponding type declarations.\n</diagnostics>"},
		{"bash", "", "/srv/app/lock does not exist"},
		{"bash", "", wrapped(0, "/srv/app/lock does not exist")},
		{"bash", "", "Bad Request\nNot Found\nToo Many Requests"},
		{"bash", "", "a.md:3:5: extraneous whitespace"},
		{"bash", "", "class TooManyRequests(HTTPException):"},
		{"bash", "", "caught PermissionError: [Errno 13] Permission denied: '/x'"},
		{"bash", "", "Got expected error: connect ECONNREFUSED 127.0.0.1:80"},
		{"Computer_terminal", "openssl errstr 0A00010B", "exitcode: 0 (execution succeeded)\nCode output: error:0A00010B:SSL routines::wrong version number\n"},
		{"bash", "cat site/429.html", wrapped(0, "<html>\n<head><title>429 Too Many Requests</title></head>\n<body></body>\n</html>")},
		{"read_file", "", "<html>\n<head><title>429 Too Many Requests</title></head>\n<body></body>\n</html>"},
		{"bash", "curl -s http://a.example.com/", wrapped(0, "<html>\n<head><title>Handling 429 Too Many Requests</title></head>\n<body><p>How to.</p></body>\n</html>")},
		{"bash", "curl -s http://a.example.com/", wrapped(0, "<html><body><h1>404 Not Found</h1><p>Connection refused?</p></body></html>")},
		{"bash", "cat a.log; grep -q x b; echo \"exit $?\"", wrapped(0, "open /srv/x: permission denied\nexit 1")},
		{"bash", "", wrapped(0, "3 files checked\nexit=1")},
		{"read_file", "", "[read_file for 'docs/errors.md'] Result:\nAccess denied: what to do\n\nThe tool execution failed with the following error:\n<error>\nx\n</error>\nis what agents say."},
		{"execute_command", "", "[execute_command for 'grep -rn ENOENT src'] Result:\nCommand executed.\nOutput:\nsrc/a.ts:3: if (e.code === 'ENOENT') return null\n"},
		{"execute_command", "", "Command executed in terminal within working directory '/srv/app'. Exit code: 0\nOutput:\nthe client says Error: ENOENT, and goes on\n"},
		{"browser_console_messages", "", "### Result\n[ERROR] Failed to load resource: the server responded with a status of 404 (Not Found) @ " +
			"http://localhost:5173/a.ico:0\n[LOG] ready @ http://localhost:5173/a.js:3"},
		{"read_page", "", "[ERROR] Failed to load resource: net::ERR_CONNECTION_REFUSED @ http://localhost:5173/a.ico:0\n[LOG] ready @ http://localhost:5173/a.js:3"},
		{"bash", "make test", `{"exit_code": 0, "stdout": "Ran 3 tests in 0.1s\n\nOK", "stderr": "open /srv/x: permission denied"}`},
		{"graphql_query", "", `{"data": {"user": {"name": "Ada", "email": null}}, "errors": [{"message": "permission denied", "path": ["user", "email"]}]}`},
		{"bash", "cat run.ps1.log", "    + FullyQualifiedErrorId : PathNotFound,Microsoft.PowerShell.Commands.GetContentCommand\ndone"},
		{"bash", "cat pom.xml", wrapped(0, "<result><status>error</status></result>")},
		{"bash", "git log --oneline", wrapped(0, "1234567 Say which linker was not found\n2345678 fatal: invalid upstream is an answer")},
		{"bash", "", wrapped(0, "<error>Permission denied</error> is what the page shows")},
		{"read_file", "", "Did you mean that a file not found: x is an answer?\nThen read on.\nThe rest follows.\nMore.\nMore."},
	} {
		if f := judge(a.tool, command(a.command), a.content); f.Failed {
			t.Errorf("%q: %s %.2f %s %q", a.content, f.Category, f.Confidence, f.Rule, f.Line)
		}
	}
	// A name that may be a program's as much as a file's is nothing to tell of.
	for _, content := range []string{wrapped(1, "find: ‘isort’: No such file or directory"), wrapped(2, "pandoc failed: No such file or directory")} {
		if f := judge("bash", "", content); !f.Failed || f.Confidence >= Threshold {
			t.Errorf("%q: %+v", content, f)
		}
	}
}

// What frameworks for agents give for the result of a tool that raised, that does not exist, or whose arguments they refuse:
// autogen, agno, LlamaIndex, smolagents, Strands and Haystack sent these; some messages of requests, httpx, aiohttp and
// SQLAlchemy were written down in their known forms.
func TestWordsOfFrameworks(t *testing.T) {
	for category, list := range map[recovery.Category][]string{
		recovery.NetworkError: {
			"HTTPSConnectionPool(host='api.wx.example', port=443): Max retries exceeded with url: /v1 (Caused by NewConnectionError: [Errno 111] Connection refused)",
			"('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))",
			"[Errno 111] Connection refused",
			"<urlopen error [Errno -2] Name or service not known>",
			"All connection attempts failed",
			"Server disconnected without sending a response.",
		},
		recovery.ToolTimeout: {
			"HTTPSConnectionPool(host='api.wx.example', port=443): Read timed out. (read timeout=10)",
			"The read operation timed out",
		},
		recovery.FileNotFound:     {"[Errno 2] No such file or directory: '/nope/x.csv'"},
		recovery.PermissionDenied: {"[Errno 13] Permission denied: '/etc/shadow'"},
		recovery.ToolNotFound: {
			"Error: The requested tool does not exist or is not available.",
			"Error: tool 'get_wether' not found in any workbench",
			"Tool get_wether not found. Please select a tool that is available.",
			"Unknown tool lookup_db, should be one of: get_weather, final_answer.",
		},
		recovery.InvalidArguments: {
			"Error while decoding function arguments: unterminated string literal (detected at line 1) (<unknown>, line 1)\n\nPlease make sure we can json.loads() the arguments and retry.",
			"Function arguments are not a valid JSON object.\n\n Please fix and retry.",
			"Error: Validation failed for input parameters: strands.tools.decorator.Get_weatherTool() argument after ** must be a mapping, not str",
			"Error:\nArgument city is required\nNow let's retry: take care not to repeat previous errors! If you have retried several times, try a completely different approach.",
			"Error:\nArgument city has type 'array' but should be 'string'\nNow let's retry: take care not to repeat previous errors! If you have retried several times, try a completely different approach.",
		},
	} {
		for _, content := range list {
			if f := judge("get_weather", `{"city":"Paris"}`, content); !f.Failed || f.Category != category || f.Confidence < Threshold {
				t.Errorf("%q: %v %s %.2f %s %q", content, f.Failed, f.Category, f.Confidence, f.Rule, f.Line)
			}
		}
	}
	for _, content := range []string{
		"HTTP Error 404: Not Found",
		"404 Client Error: Not Found for url: https://api.wx.example/v1",
		"Client error '404 Not Found' for url 'https://api.wx.example/v1'\nFor more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/404",
		"(sqlite3.OperationalError) no such table: users\n[SQL: select * from users]\n(Background on this error at: https://sqlalche.me/e/20/e3q8)",
		"Failed to invoke Tool `get_weather` with parameters {'city': 'Nowhere'}. Error: city Nowhere is not known to the station list",
		"Error:\nCode execution failed at line 'print(get_wether(\"Paris\"))' due to: InterpreterError: Forbidden function evaluation: 'get_wether' is not among the explicitly allowed tools or defined/imported in the preceding code",
	} {
		if f := judge("get_weather", `{"city":"Paris"}`, content); !f.Failed || f.Category != recovery.CategoryNone {
			t.Errorf("%q: %v %s %.2f %s %q", content, f.Failed, f.Category, f.Confidence, f.Rule, f.Line)
		}
	}
	for _, content := range []string{
		"Paris: sunny, 21 degrees, errors in forecast 0, failed sensors: none",
		"Connection errors: 0",
		"All connection attempts succeeded",
		"[Errno 2] is what Python prints for a missing file.\nSee errno.\nSee os.\nSee open.",
	} {
		if f := judge("get_weather", `{"city":"Paris"}`, content); f.Failed {
			t.Errorf("%q: %s %.2f %s %q", content, f.Category, f.Confidence, f.Rule, f.Line)
		}
	}
}

// What a framework says to the model below every error does not make two errors the same.
func TestClosingWordsOfFrameworks(t *testing.T) {
	for _, closing := range []string{
		"\n Please fix your mistakes.", // LangChain
		"\nPlease try again or use another tool\nNow let's retry: take care not to repeat previous errors! If you have retried several times, try a completely different approach.\n", // smolagents
		"\n\nFix the errors and try again.", // Pydantic AI
	} {
		a, b := judge("get_weather", `{}`, "Error: city Nowhere is not on the list"+closing), judge("get_weather", `{}`, "Error: the sensor of Rome is away"+closing)
		if !a.Failed || a.Line != "Error: city Nowhere is not on the list" || a.Fingerprint == b.Fingerprint {
			t.Errorf("%q: %v %q, and %q", closing, a.Failed, a.Line, b.Line)
		}
	}
}

// Two refusals by a validator are the same failure only if it complains of the same, whatever the values were.
func TestComplaintsOfValidators(t *testing.T) {
	refuse := func(lines string) recovery.ToolFailure {
		return judge("get_weather", `{}`, "1 validation error for get_weather\n"+lines+"\n    For further information visit https://errors.pydantic.dev/2.14/v/x")
	}
	lacks := refuse("city\n  Field required [type=missing, input_value={'days': 1}, input_type=dict]")
	if want := "1 validation error for get_weather city: Field required"; lacks.Line != want {
		t.Errorf("%q, want %q", lacks.Line, want)
	}
	if again := refuse("city\n  Field required [type=missing, input_value={'days': 2}, input_type=dict]"); again.Fingerprint != lacks.Fingerprint {
		t.Errorf("%q differs from %q", again.Line, lacks.Line)
	}
	if other := refuse("city\n  Input should be a valid string [type=string_type, input_value=[1], input_type=list]"); other.Fingerprint == lacks.Fingerprint {
		t.Errorf("%q is the same as %q", other.Line, lacks.Line)
	}
}

package annotate

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// missingProgram matches the name of a missing program in messages of shells and runtimes.
var missingProgram = recovery.NewPattern(`(?i)(?:^|/)(?:env|find|xargs): ['"‘]?([\w.+/@-]{1,64})['"’]?: No such file|([\w.+/@-]{1,64}): (?:command )?not found\b|` +
	`(?:command not found|unknown command|unrecognized command|no such command)[:\s]+['"‘\x60]?([\w.+/@-]{1,64})|` +
	`['"‘\x60]([\w.+/@-]{1,64})['"’\x60]:? (?:is not recognized|executable file not found|command not found|(?:\w+ )?not found (?:on|in) (?:\w+ |\$)?PATH)|\bspawn ([\w.+/@-]{1,64}) ENOENT|\bno '([\w.+-]{1,64})' command\b|\[Errno 2\] No such file or directory: '([\w+-]{1,64})'`)

// complaining matches the name of a program in its own message about its arguments. A script may have called it.
var complaining = recovery.NewPattern(`^([A-Za-z][\w.+-]{1,40}): error: `)

// program returns the program that failed: the one that the message calls missing, or else the program of the
// command line that the message names, or else, if a program is not what is missing, the one that the result names, or
// the last one that does not only prepare (as cd does).
func (s *failureContext) program() string {
	if len(trajectory.NameWords(s.f.Tool)) > 1 && trajectory.HasWord(s.f.Line, s.f.Tool) {
		return "" // the tool speaks of itself
	}
	if v := s.longest(); v != nil && s.f.Category == recovery.ToolTimeout {
		return v.Runs()
	}
	line := shellHead.ReplaceAllString(s.f.Line, "")
	if m := missingProgram.FindStringSubmatch(line); m != nil && s.f.Chain() == command {
		return cmp.Or(m[1:]...)
	}
	if m := complaining.FindStringSubmatch(line); m != nil && s.f.Chain() == string(recovery.InvalidArguments) {
		return m[1]
	}
	for _, text := range [...]string{line, s.content} {
		for _, v := range s.programs {
			if !v.Prepares() && (trajectory.HasWord(text, v.Words[0]) || trajectory.HasWord(text, v.Program)) {
				return v.Program
			}
		}
		if s.f.Chain() == command {
			return ""
		}
	}
	for _, v := range slices.Backward(s.programs) {
		if runs := v.Runs(); !v.Prepares() && strings.Trim(runs, "{}@%") != "" && !strings.ContainsAny(runs, "<>") {
			return runs
		}
	}
	return ""
}

// shellHead matches the prefix that a shell puts before its messages.
var shellHead = recovery.NewPattern(`^(?:(?:\S*/)?-?(?:ba|z|da|k|a|fi)?sh|\(eval\))(?:: line \d+|:\d+|: \d+)?: (?:(?:cd|source|\.|exec): )?`)

// heldTogether matches the message of a shell about a missing program whose name has blanks.
var heldTogether = recovery.NewPattern(`^(?:\S*/)?(?:ba|z|da)?sh: (?:line )?\d{1,6}: ([^\s:]+ [^:]{1,100}): (?:command )?not found$`)

// prose finds text that is not a command and that a shell ran as one.
func (s *failureContext) prose() fact {
	if m := heldTogether.FindStringSubmatch(strings.TrimSpace(s.f.Line)); m != nil {
		return fact{say: "The shell took " + quoted(m[1]) + " for the name of one program: quotation marks or apostrophes hold it together."}
	}
	if first := s.failingCall.Prose(); first != "" {
		return fact{say: "The code block holds prose (" + quoted(first) + "), which the shell took for a command.",
			call: "Put only the command into the block, and the words outside of it."}
	}
	line := strings.TrimSpace(s.failingCall.Line())
	first, _, _ := strings.Cut(line, "\n")
	if strings.HasPrefix(line, "[File: ") {
		return fact{say: "The code block holds what an earlier result printed (" + quoted(first) + "), which is no command: put a command into it."}
	}
	return fact{}
}

// python matches the beginning of a Python program of more than one line.
var python = recovery.NewPattern(`^\s*(?:from [\w.]+ import [^\n]+|import [\w.]+(?:, ?\w+)*(?: as \w+)?)\n`)

// pythonCode finds Python code that a shell ran as commands.
func (s *failureContext) pythonCode() fact {
	if !python.MatchString(s.failingCall.Line()) || !shellHead.MatchString(s.f.Line) {
		return fact{}
	}
	return fact{say: "The shell took Python code for commands.", call: "Write the code to a file and run that with `python3`."}
}

// blockWanted matches the answer of an agent that found no action in a message.
var blockWanted = recovery.NewPattern(`(?i)\b(?:triple backticks|code ?block)\b[^\n]*\bfound 0\b`)

// openFence finds why an agent saw no code block in a message that has one: the block does not end, or its end does
// not stand on a line of its own.
func (s *failureContext) openFence() fact {
	if s.turn >= len(s.list) || !s.has("found 0") || !blockWanted.MatchString(s.content) {
		return fact{}
	}
	said := strings.TrimRight(s.list[s.turn].Text(), " \t\r\n")
	if before, ends := strings.CutSuffix(said, "```"); ends {
		last := strings.Fields(before[strings.LastIndexByte(before, '\n')+1:])
		if len(last) == 0 || strings.Count(said, "```") != 2 {
			return fact{}
		}
		return fact{say: "The three backticks that end the code block stand behind " + quoted(trajectory.Ends(last[len(last)-1], 0, 30)) + ".", call: "Put the closing three backticks on a line of their own."}
	}
	if !strings.HasPrefix(said, "```") && !strings.Contains(said, "\n```") || strings.Count(said, "```") != 1 || len(said) > maxUncut {
		return fact{}
	}
	return fact{say: "The code block has no end.", call: "Close the code block with three backticks on a line of their own."}
}

// maxUncut is the length, in bytes, from which a message without an end was probably cut off by a limit.
const maxUncut = 4 << 10

var (
	// hereWord matches the beginning of a here-document in a shell's command.
	hereWord = recovery.NewPattern(`<<-?[ \t]*['"]?([A-Za-z_]\w{0,30})['"]?`)
	// joined matches a shell's error about an operator at the beginning of a line.
	joined = recovery.NewPattern("near unexpected token [`']?(&&|\\|\\|?)['`]")
)

// hereDocument finds a here-document whose last line does not end it, or that the next line wants to join with an
// operator.
func (s *failureContext) hereDocument() fact {
	line := s.failingCall.Line()
	if !strings.Contains(line, "<<") {
		return fact{}
	}
	unended := strings.Contains(s.content, "here-document") && strings.Contains(s.content, "delimited by end-of-file")
	operator := joined.FindStringSubmatch(s.f.Line)
	for _, m := range hereWord.FindAllStringSubmatch(line, maxInLine) {
		for rest := line; ; {
			_, after, found := strings.Cut(rest, "\n"+m[1])
			if !found {
				break
			}
			rest = after
			behind, next, _ := strings.Cut(after, "\n")
			behind = strings.TrimLeft(behind, " \t")
			op, _, _ := strings.Cut(behind, " ")
			switch {
			case behind != "" && strings.IndexByte("&|;>)", behind[0]) >= 0 && (unended || strings.Contains(s.content, m[1]+" "+op)):
				return fact{say: "The line " + quoted(m[1]+" "+op+" …") + " does not end the here-document: " + quoted(m[1]) + " must be all of its line.",
					call: "Put what follows " + quoted(m[1]) + " on the next line, or behind the `<<` of the first one."}
			case operator != nil && behind == "" && strings.HasPrefix(strings.TrimLeft(next, " \t"), operator[1]):
				next = strings.TrimSpace(strings.TrimLeft(next, " \t")[len(operator[1]):])
				return fact{say: "A line cannot begin with " + quoted(operator[1]) + ", not behind the " + quoted(m[1]) + " that ends a here-document either.",
					call: "Put " + quoted(next) + " on that line without " + quoted(operator[1]) + ", or with it behind the `<<` of the first line."}
			}
		}
	}
	return fact{}
}

// maxInLine limits the here-documents of one command.
const maxInLine = 8

// glued matches a command that lacks the space before its path.
var glued = recovery.NewPattern(`^(cd|ls|find|cat|grep|du|tree)(\.{1,2}(?:/\S*)?)$`)

// missingBlank finds a program's name that is glued to a path.
func (s *failureContext) missingBlank() fact {
	program := s.program()
	m := glued.FindStringSubmatch(program)
	if m == nil {
		return fact{}
	}
	return fact{say: "A blank is missing: " + quoted(m[1]+" "+m[2]) + " in place of " + quoted(program) + ".", call: s.run(strings.Replace(s.failingCall.Line(), program, m[1]+" "+m[2], 1))}
}

// inBackticks matches a command line that is only a command in backticks.
var inBackticks = recovery.NewPattern("^(?:```bash ([^`]+)```|`+([^`]+)`+)$")

// substituted finds a command in backticks, whose output the shell ran as a command.
func (s *failureContext) substituted() fact {
	m := inBackticks.FindStringSubmatch(strings.TrimSpace(s.failingCall.Line()))
	if m == nil || trajectory.HasWord(m[1]+m[2], s.program()) {
		return fact{}
	}
	return fact{say: "The shell ran what the command in backticks printed. Without the backticks it is printed.", call: s.run(m[1] + m[2])}
}

// bashOnly matches errors of dash and ash about syntax that only bash knows.
var bashOnly = recovery.NewPattern(`^(?:\S*/)?(?:da|a)?sh: \d{1,6}: (?:(\[\[|source|declare|typeset|shopt|pushd|popd|let): not found|Bad substitution|set: Illegal option -o pipefail)`)

// bashism finds a bash command that another shell ran.
func (s *failureContext) bashism() fact {
	mark, line := trajectory.CutMagic(s.failingCall.Line())
	if !bashOnly.MatchString(s.f.Line) || strings.Contains(line, "'") {
		return fact{}
	}
	return s.commanded("The shell that runs this is plain `sh`", mark+"bash -c '"+line+"'", "`bash -c '…'` runs it")
}

// repository matches a repository's URL at a host that serves archives.
var repository = recovery.NewPattern(`https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?(?:['"\s/]|$)`)

// archive describes how to download a repository without git.
func (s *failureContext) archive() fact {
	line := s.failingCall.Line()
	m := repository.FindStringSubmatch(line)
	if s.program() != "git" || m == nil || !strings.Contains(line, "clone") || s.reportedMissing("curl") || s.reportedMissing("tar") {
		return fact{}
	}
	return s.commanded("Without `git`, the archive of the same repository has its files", "curl -L https://github.com/"+m[1]+"/archive/HEAD.tar.gz | tar xz", "it can be downloaded")
}

// noSystemd describes how to start services without systemd.
func (s *failureContext) noSystemd() fact {
	if s.program() != "systemctl" {
		return fact{}
	}
	for _, v := range s.programs {
		if args := v.Operands(); v.Program == "systemctl" && len(args) >= 2 && !slices.Contains([]string{"enable", "disable", "daemon-reload", "mask"}, args[0]) {
			line := "service " + strings.TrimSuffix(args[1], ".service") + " " + args[0]
			return s.commanded("There is no systemd here", line, quoted(line)+" does the same, or the program itself can be started")
		}
	}
	return fact{say: "There is no systemd here: `service NAME start` starts a service, or the program itself can be started."}
}

// foreignPatch finds the patch program of another agent.
func (s *failureContext) foreignPatch() fact {
	if program := s.program(); program == "apply_patch" || program == "applypatch" {
		return fact{say: quoted(program) + " is no program of this shell: a script can make the change, or `git apply` with a unified diff, which has `---`, `+++` and `@@` with line numbers."}
	}
	return fact{}
}

// renamed maps programs to others that take the same arguments and that every system has, standIns to others that do
// the same in their own way. None of them installs or downloads software.
var (
	renamed = map[string]string{"python": "python3", "pip": "python3 -m pip", "pip3": "python3 -m pip", "bat": "cat", "exa": "ls", "eza": "ls",
		"which": "command -v", "gsed": "sed", "gtimeout": "timeout", "md5": "md5sum"}
	standIns = map[string]string{"rg": "grep -rnE", "ag": "grep -rnE", "ack": "grep -rnE", "fd": "find . -name", "findstr": "grep",
		"nslookup": "getent hosts", "dig": "getent hosts"}
)

// standIn finds another program that does the same.
func (s *failureContext) standIn() fact {
	program := s.program()
	by := cmp.Or(renamed[program], standIns[program])
	first, _, _ := strings.Cut(by, " ")
	if by == "" || s.reportedMissing(first) || s.uses()&shells == 0 || trajectory.HasWord(s.content, first) {
		return fact{}
	}
	f := fact{say: quoted(by) + " usually does what " + quoted(program) + " does."}
	if first == "python3" {
		f.say = strings.TrimSuffix(f.say, ".") + ", if it is here."
	}
	line := s.failingCall.Line()
	if i := strings.Index(line, program+" "); renamed[program] != "" && i >= 0 && (i == 0 || !isWord(line[i-1])) {
		f.call = s.run(line[:i] + by + line[i+len(program):])
	}
	return f
}

// interpreters maps file endings and names to the program that runs such a script.
var interpreters = map[string]string{".sh": "bash", ".bash": "bash", ".py": "python3", ".js": "node", ".rb": "ruby", ".pl": "perl", "gradlew": "sh", "mvnw": "sh", "configure": "sh"}

// notExecutable describes how to run a script that lacks the permission to execute.
func (s *failureContext) notExecutable() fact {
	for _, v := range s.programs {
		with := cmp.Or(interpreters[path.Ext(v.Program)], interpreters[v.Program])
		if with == "" || !strings.Contains(v.Words[0], "/") || !strings.Contains(s.f.Line, v.Words[0]) {
			continue
		}
		if line := s.prepared(v, with+" "+v.Text); s.permitted(line) && len(line) <= maxQuoted {
			return s.commanded("The script is not executable", line, quoted(line)+" runs it as it is")
		}
	}
	return fact{}
}

var (
	prompt  = recovery.NewPattern(`(?m)(?:^|[\w)\]?] ?)(?:[>?:]|>>>|\[[yY]/[nN]\]:?|\$) *$`)
	wanting = recovery.NewPattern(`(?i)interactive input|waiting for (?:user )?input|requires? (?:user )?input|non-interactive`)
)

// confirmPrompt matches a prompt for confirmation.
var confirmPrompt = recovery.NewPattern(`\[[yY](?:es)?/[nN]o?\]`)

// waitsForInput finds a program that waited for input until the time limit.
func (s *failureContext) waitsForInput() fact {
	program := s.longest()
	lines := strings.Split(strings.TrimSpace(s.printedBefore()), "\n")
	if program == nil || s.failingCall.Line() == "" || !wanting.MatchString(s.content) || !prompt.MatchString(lines[len(lines)-1]) || strings.Contains(s.failingCall.Line(), "<") {
		return fact{}
	}
	if confirmPrompt.MatchString(lines[len(lines)-1]) {
		return fact{say: "It asks whether to go on, and nobody answers: with its option to say yes to all (often `-y`) it goes on by itself."}
	}
	line := s.prepared(*program, `printf 'FIRST\nSECOND\n' | `+program.Text)
	return fact{say: "What it printed ends with a prompt: the program waits for input. Give it all lines at once, as in " + quoted(line) + ", with the lines that it asks for."}
}

// outputTag matches the tag that agents put around the output of a command that they ended.
var outputTag = recovery.NewPattern(`(?is)<output>\s*(.*?)\s*</output>`)

// printedBefore returns the output of a command until it was ended.
func (s *failureContext) printedBefore() string {
	if m := outputTag.FindStringSubmatch(s.content); m != nil {
		return m[1]
	}
	return s.content
}

// endedJob matches a shell's report about a command that was ended.
var endedJob = recovery.NewPattern(`(?m): line \d+: +\d+ (?:Killed|Terminated) +(\S.*?)\s*$`)

// longest returns the program of the failing command line that probably takes the time: the one that the shell says was
// ended, or else the last one that does not only prepare or filter.
func (s *failureContext) longest() *trajectory.Invocation {
	if m := endedJob.FindStringSubmatch(s.content); m != nil {
		for i := range s.programs {
			if s.programs[i].Text == m[1] {
				return &s.programs[i]
			}
		}
	}
	for i := range slices.Backward(s.programs) {
		if !s.programs[i].Prepares() && !slices.Contains([]string{"grep", "sed", "awk", "cat", "sleep"}, s.programs[i].Program) {
			return &s.programs[i]
		}
	}
	return nil
}

// serving matches commands that serve until they are ended.
var serving = recovery.NewPattern(`^(?:\S*/)?(?:python3? (?:-u )?(?:-m http\.server|\S*manage\.py runserver)|(?:python3? -m )?(?:uvicorn|gunicorn|flask run)|rails (?:s|server)\b|` +
	`(?:npm|yarn|pnpm) (?:run )?dev\b|(?:npx )?(?:vite|next dev|http-server|ng serve)\b)`)

// endless finds a program that goes on until it is ended.
func (s *failureContext) endless() fact {
	for _, v := range s.programs {
		has := func(options ...string) bool {
			return slices.ContainsFunc(v.Words[1:], func(w string) bool {
				return slices.ContainsFunc(options, func(o string) bool { return w == o || len(o) == 2 && strings.HasPrefix(w, o) })
			})
		}
		switch {
		case v.Program == "ping" && !has("-c", "-w"):
			return s.commanded("`ping` goes on until it is ended", s.prepared(v, "ping -c 3"+strings.TrimPrefix(v.Text, "ping")), "`ping -c 3` ends")
		case v.Program == "tail" && has("-f", "-F", "--follow"):
			return fact{say: "`tail -f` goes on until it is ended; without `-f` it prints the end that is there now."}
		case v.Program == "top" && !has("-n", "-b"):
			return s.commanded("`top` goes on until it is ended", s.prepared(v, "top -b -n 1"), "`top -b -n 1` ends")
		case serving.MatchString(v.Text) && !s.inBackground() && !strings.Contains(v.Text, "\n"):
			const log = "> /tmp/server.log 2>&1 &"
			return s.commanded("It serves until it is ended, so the next calls need it in the background",
				s.prepared(v, "nohup "+v.Text+" "+log), "end the same command with "+quoted(log))
		}
	}
	return fact{}
}

// inBackground reports whether the failing command line already runs in the background.
func (s *failureContext) inBackground() bool {
	line := s.failingCall.Line()
	return strings.Contains(line, "nohup") || strings.HasSuffix(strings.TrimSpace(line), "&")
}

// ownLimit matches messages of programs that have time limits of their own.
var ownLimit = recovery.NewPattern(`(?i)^(?:curl|wget|ssh|git|fatal|E|W|ERROR|npm [\w!]+)(?:: |:? \()|\b(?:connection|read|connect|operation|request) timed out|ETIMEDOUT|ReadTimeout`)

// downloading matches commands that take long because they download or build.
var downloading = recovery.NewPattern(`(?i)^(?:sudo )?(?:\S*/)?(?:pip3?|conda|mamba|apt|apt-get|yum|dnf|apk|npm|yarn|pnpm|cargo|mvn|\S*gradlew?|\S*mvnw|make|cmake|go|docker|git|wget|curl|python3? -m pip)\b.*\b(?:install|create|build|clone|pull|update|compile|test|package|download|get|make|https?:)`)

// takesLong describes how to run a command that takes longer than one call may.
func (s *failureContext) takesLong() fact {
	v := s.longest()
	if v == nil || s.inBackground() || ownLimit.MatchString(s.f.Line) || !downloading.MatchString(v.Text) || strings.Contains(v.Text, "\n") {
		return fact{}
	}
	text, elevated := strings.CutPrefix(v.Text, "sudo ")
	program, _, _ := strings.Cut(text, " ")
	state, yes := quoted(program)+" was still at work.", ""
	if strings.HasPrefix(program, "apt") && strings.Contains(text, " install") && !strings.Contains(text, " -y") && !strings.Contains(text, " --yes") {
		yes = " -y" // in the background nobody can confirm
		if !strings.Contains(s.content, "Get:") {
			state = quoted(program+" install") + " without `-y` waits for a yes."
		}
	}
	log := yes + " > /tmp/" + path.Base(program) + ".log 2>&1 &"
	line := s.prepared(*v, "nohup "+text+log)
	if elevated || len(line) > maxQuoted {
		return fact{say: state + " In the background it can go on: end the same command with " + quoted(log) + ", then read the end of that log."}
	}
	return s.commanded(state+" It can go on in the background, with a log whose end tells how far it is", line, quoted(line))
}

// prepared returns a command that replaces one program of the failing line, after what the line did before to enter
// its directory and environment: many agents start each command in a new shell.
func (s *failureContext) prepared(v trajectory.Invocation, line string) string {
	before := ""
	for _, p := range s.programs {
		if p.Text == v.Text {
			break
		}
		if slices.Contains([]string{"cd", "source", ".", "export"}, p.Program) {
			before += p.Text + " && "
		}
	}
	return before + line
}

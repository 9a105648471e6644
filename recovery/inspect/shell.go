package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
)

// shellRules recognise that a program is missing, in the words of shells, of
// programs that run others, and of operating systems, in the languages whose
// translations agents meet.
var shellRules = []rule{
	{"shell-not-found", recovery.CommandNotFound, []string{"not found"},
		recovery.NewPattern(`^-?(?:\S*/)?(?:ba|da|z|k|a|c|tc)?sh(?:\[\d+\])?(?:: line \d+|: ?\d+|: -c: line \d+|: eval: line \d+)*: [^:]{1,160}: (?:command )?not found$`), piped},
	{"script-not-found", recovery.CommandNotFound, []string{"not found"},
		recovery.NewPattern(`^[^:]{1,300}: (?:line )?\d+: (?:exec: )?[^:\s]{1,160}: (?:command )?not found$`), piped},
	{"zsh-not-found", recovery.CommandNotFound, []string{"command not found"},
		recovery.NewPattern(`^(?:[\w./-]*(?::\d+)?: ?)*command not found: \S+$`), piped},
	{"fish-unknown", recovery.CommandNotFound, []string{"fish: "}, recovery.NewPattern(`^fish: (?:Unknown command:? |The command .* not found)`), piped},
	{"csh-not-found", recovery.CommandNotFound, []string{"command not found."}, recovery.NewPattern(`^[\w.+-]{1,60}: Command not found\.$`), piped},
	{"plain-not-found", recovery.CommandNotFound, []string{"command not found"},
		recovery.NewPattern(`^(?:Error: |ERROR: |error: )?(?:(?:ba|z|da|k)?sh: )?(?:[Cc]ommand not found: ['"` + "`" + `]?[\w./+-]+['"` + "`" + `]?\.?|[\w.+-]{1,60}: command not found)$`), strict},
	{"runner-not-found", recovery.CommandNotFound, []string{"no such file", "command not found", "not found"},
		recovery.NewPattern(`^(?:sudo|xargs|env|/usr/bin/env|time|/usr/bin/time|nohup|exec|watch|doas|nice|timeout|stdbuf|setsid|ionice|strace|entr|script|chroot|command|parallel|flock)(?:: line \d+)?: (?:(?:failed to (?:run|execute)(?: command)?|cannot (?:run|exec(?:ute)?)|can't execute|exec(?:vp)?(?: failed)?|unable to execute) )?['"‘’“”` + "`" + `]?[\w./+\\-]{1,120}['"‘’“”` + "`" + `]?: (?:command not found|not found|No such file or directory)$`), piped},
	{"make-not-found", recovery.CommandNotFound, []string{"make"},
		recovery.NewPattern(`^g?make(?:\[\d+\])?: (?:[\w./+-]{1,120}: Command not found|[\w/+-]{1,120}: No such file or directory)$`), piped},
	{"distribution-hint", recovery.CommandNotFound, []string{"not found, ", "not installed", "not found. try:", "was not found, but"},
		recovery.NewPattern(`^(?:Command ['"‘].{1,80}['"’] (?:not found, (?:but|did)|was not found, but)|The program ['"‘].{1,80}['"’] is (?:currently )?not installed|No command ['"‘].{1,80}['"’] found)`), piped},
	{"windows-not-recognized", recovery.CommandNotFound, []string{"is not recognized as", "commandnotfoundexception"},
		recovery.NewPattern(`is not recognized as (?:an internal or external command|(?:the|a) name of a cmdlet)|\bCommandNotFoundException\b`), piped},
	{"go-exec", recovery.CommandNotFound, []string{"executable file not found"}, recovery.NewPattern(`executable file not found in (?:\$PATH|%PATH%)`), piped},
	{"node-spawn", recovery.CommandNotFound, []string{"enoent"},
		recovery.NewPattern(`^(?:(?:Uncaught )?(?:Error: |\[?Error: |npm (?:error|ERR!) )?(?:\S{1,40}: )?)?(?:spawn(?:Sync)?|execvp?|exec) .{1,160} ENOENT\b`), piped},
	// The method that failed is one that runs programs.
	{"ruby-exec", recovery.CommandNotFound, []string{"errno::enoent"},
		recovery.NewPattern("\\bin [`'](?:Kernel#|Process\\.|IO\\.)?(?:exec|spawn|system|popen\\w*|`)': No such file or directory - [\\w.+-]+ \\(Errno::ENOENT\\)"), strict},
	{"java-exec", recovery.CommandNotFound, []string{"cannot run program"}, recovery.NewPattern(`Cannot run program ".{1,200}".{0,200}error(?:=|: )2\b`), piped},
	// A program's own words for one that it was to run; a path may be a file of the project.
	{"run-missing", recovery.CommandNotFound, []string{"no such file", "enoent", "not found", "os error 2"},
		recovery.NewPattern(`(?i)^(?:\S{1,60}: )*(?:(?:cannot|can't|could not|couldn't|unable to|failed to) (?:run|exec(?:ute)?|spawn|start|launch|invoke)|(?:error|failed) (?:running|executing|spawning|starting|launching|invoking)) (?:command |program |process |executable |subprocess )?['"‘\x60]?[\w+-]{1,60}['"’\x60]?: .{0,60}(?:No such file or directory|ENOENT|command not found|executable file not found|program not found)`), piped},
	// Builders that run a compiler, a linker, a generator.
	{"builder-missing", recovery.CommandNotFound, []string{"linker", "not installed?", "cannot find ", "command '", "compiler", "protoc", "not found: ", "no such file", "entity not found", "find python", "build program"},
		recovery.NewPattern("^(?:error: linker [`'\"][\\w.+-]{1,60}['`\"] not found|is `[\\w.+-]{1,60}` not installed\\?|collect2: fatal error: cannot find ['‘][\\w.+-]{1,60}['’]|\\S{1,60}: fatal error: cannot execute ['‘][\\w.+-]{1,60}['’]: (?:exec\\w*|posix_spawnp?): No such file or directory|error: command '[\\w.+-]{1,80}' failed: No such file or directory|(?:configure: )?error: no acceptable (?:C|C\\+\\+|Fortran) compiler found|.{0,60}Could not find `protoc`|CMake Error: CMake was unable to find a build program corresponding to|gyp ERR! (?:stack )?(?:Error: )?not found: [\\w.+-]{1,60}|gyp ERR! find Python Could not find any Python)|\\bposix_spawnp?: (?:does not exist \\(No such file|No such file)|^System\\.ComponentModel\\.Win32Exception .{0,40}An error occurred trying to start process '[\\w.+-]{1,80}' .*No such file or directory|^.{0,60}Failed to spawn ['\"][\\w.+-]{1,80}['\"]: entity not found"), strict},
	{"perl-exec", recovery.CommandNotFound, []string{"exec", "no such file"}, recovery.NewPattern(`^(?:Can't exec ".{1,120}"|(?i:cannot|could not|failed to|unable to) (?:exec|run|spawn|execute) [\w./+-]{1,80}|exec(?:vp)? (?:of .{1,80} )?failed): No such file or directory`), strict},
	{"not-in-path", recovery.CommandNotFound, []string{"path"},
		recovery.NewPattern(`(?i)\b(?:is not installed or (?:it's |is )?not in (?:your |the )?path|not found (?:in|on) (?:your |the |system )?\$?path\b|(?:could not|cannot|couldn't|unable to) (?:find|locate) .{1,80} (?:in|on) (?:your |the |system )?\$?path\b|is not (?:in|on) (?:your |the |system )?\$?path\b|could not be found (?:within|in|on) (?:your |the |system )?(?-i:\$?PATH)\b)`), strict},
	{"executable-missing", recovery.CommandNotFound, []string{"executable", "binary", "program"},
		recovery.NewPattern(`(?i)^(?:error: |\S+: )?(?:(?:could not|cannot|couldn't|can't|unable to|failed to) (?:find|locate|run|execute|spawn) (?:the )?(?:executable|binary|program)\b|(?:executable|binary|program) ['"‘` + "`" + `]?[\w./+-]+['"’` + "`" + `]? (?:was |is |could )?not (?:be )?found\b)`), strict},
	{"rust-subcommand", recovery.CommandNotFound, []string{"no such command", "no such subcommand"}, recovery.NewPattern("^error: no such (?:sub)?command: "), strict},
	{"interpreter", recovery.CommandNotFound, []string{"bad interpreter"}, recovery.NewPattern(`bad interpreter: No such file or directory$`), piped},
	{"npm-executable", recovery.CommandNotFound, []string{"could not determine executable", "npm err! could not find"}, recovery.NewPattern(`^npm (?:error|ERR!) could not determine executable to run`), strict},
	{"container-exec", recovery.CommandNotFound, []string{"stat "}, recovery.NewPattern(`\bexec: "[^"]{1,160}": stat [^:]{1,160}: no such file or directory`), piped},
	{"package-runner", recovery.CommandNotFound, []string{"command", "failed to spawn"},
		recovery.NewPattern(`^(?:error:? )?(?:Failed to spawn: .*|Command ['"\x60]?[\w./+-]{1,60}['"\x60]? not found\.?(?: .*)?|ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL.*Command ".*" not found|.{0,20}ERR_PNPM_\w+.{0,10}Command "[^"]+" not found)$`), strict},

	{"not-found-de", recovery.CommandNotFound, []string{"nicht gefunden", "falsch geschrieben", "nicht als name"},
		recovery.NewPattern(`: (?:Kommando|Befehl) nicht gefunden\.?$|^(?:Der )?Befehl ".{1,80}" (?:ist entweder falsch geschrieben|nicht gefunden)|wurde nicht als Name eines Cmdlet`), piped},
	{"not-found-fr", recovery.CommandNotFound, []string{"introuvable", "reconnu"},
		recovery.NewPattern(`: ?commande introuvable\.?$|n['’]est pas reconnu (?:en tant que commande|comme nom d['’]applet)|n'est pas reconnu en tant que`), piped},
	{"not-found-es", recovery.CommandNotFound, []string{"no encontrad", "no se encontró", "no se reconoce"},
		recovery.NewPattern(`: (?:orden|comando) no encontrad[oa]|: no se encontró la orden|no se reconoce como (?:un )?(?:comando|nombre de un cmdlet)`), piped},
	{"not-found-zh", recovery.CommandNotFound, []string{"找不到", "未找到", "不是内部", "无法将", "沒有"},
		recovery.NewPattern(`(?:未找到命令|找不到命令|未找到指令|找不到指令|命令未找到)|不是内部或外部命令|无法将.{0,40}项识别为 ?cmdlet`), piped},
	{"not-found-ja", recovery.CommandNotFound, []string{"見つかりません", "内部コマンド", "認識されません"},
		recovery.NewPattern(`コマンドが見つかりません|内部コマンドまたは外部コマンド|コマンドレット.{0,80}として認識されません`), piped},
	{"not-found-other-languages", recovery.CommandNotFound, []string{"não encontrado", "non trovato", "не найдена", "찾을 수 없", "no se reconoce", "não é reconhecido", "non è riconosciuto", "не является внутренней", "niet gevonden", "nie znaleziono", "내부 또는 외부 명령"},
		recovery.NewPattern(`: (?:comando não encontrado|comando non trovato|команда не найдена|명령어를 찾을 수 없음|opdracht niet gevonden|nie znaleziono polecenia)|não é reconhecido como um comando|non è riconosciuto come comando|не является внутренней или внешней|내부 또는 외부 명령`), piped},
	{"not-found-words", recovery.CommandNotFound, []string{"not found", "not installed"},
		recovery.NewPattern(`(?i)\b(?:command|executable|program|binary) (?:['"‘` + "`" + `].{1,60}['"’` + "`" + `] )?(?:was )?not found\b|^[\w.+-]{1,40} (?:command )?(?:is )?not installed\b|^[\w./ -]{1,60}: not found$`), loose},
}

package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
)

// The messages of operating systems, after the name of the program that prints
// them ("cp: cannot stat 'x': Permission denied"), with the codes and words of
// runtimes and other languages. A program's name is what stands before the
// first colon.

const (
	program = `^(?:[\w.+/@-]{1,80}(?: [\w.()+-]{1,30}){0,2}|[\w.+-]{1,40} \(child\)|-?\S{1,40}(?:: line \d+|: \d+)|\S*/\S{1,80})(?:\[\d+\])?:\s{1,2}.{0,400}?`
	ending  = `(?: \((?:os error )?\d+\)| \(you must be root\))?[.)'"’”>]{0,3}(?:\s+Stop\.| at \S+ line \d+\.?| -- .*| - .*| \(LoadError\)| \(\d+\))?$`
	// pathForm is a name that can only be a file's: absolute, or with a known extension, or a folder's.
	pathForm = `(?:[\w.~-]*(?:/[\w.@~-]+)+/?|[\w.-]+/|[\w.-]+\.(?:json|ya?ml|toml|py|[jt]sx?|[cm]js|go|rs|c|h|cpp|java|jar|sh|sql|md|txt|csv|xml|html|css|log|lock|ini|cfg|conf|pem|key|zip|t?gz|tar|db|png|jpg|svg|pdf|ipynb|tf|tfvars|hcl|proto|rb|php|lua|env|parquet))`
	// pathError ends with the system's words: what Go says, and programs without their name in front.
	pathError = `(?:(?:^|: )(?:open|l?stat|chdir|mkdir|readlink|unlinkat|remove|read|readdirent|CreateFile) [^\s:]{1,300}: |^(?i:could not|couldn't|cannot|can't|failed to|unable to) (?:open|read|load|access|stat|create|write|find|change)(?: (?:to|the|for|from|user|input|output|source|config|configuration|script|working|directory|file))* ['"\x60]?[^\s:'"\x60]{1,300}['"\x60]?: )(?i)`
	// errnoHead is what stands before a code of libuv and of Node.js.
	errnoHead = `^(?:Uncaught |\[?)?(?:[\w$.]*Error(?: \[\w+\])?: |npm (?:error|ERR!) (?:code |errno |nospc |syscall \w+ )?|(?:Error|Failed|Cannot|Could not|Unable)[^:]{0,120}: |[\w.-]{1,60} (?:crashed|failed|errored|threw): |\w+: )*`
)

var permissionRules = []rule{
	{"errno-permission", recovery.PermissionDenied, []string{"permission denied", "operation not permitted", "read-only file system", "access denied", "access is denied"},
		recovery.NewPattern(program + `(?i)\b(?:Permission denied|Operation not permitted|Read-only file system|Access (?:is )?denied)` + ending), strict},
	{"shell-permission", recovery.PermissionDenied, []string{"permission denied"},
		recovery.NewPattern(`(?i)^(?:\S*/)?(?:ba|z|da|k|a|fi)?sh(?:: line \d+|:\d+|: \d+)?: (?:permission denied: \S+|.{1,300}: permission denied)$`), piped},
	{"runtime-permission", recovery.PermissionDenied, []string{"eacces", "eperm", "erofs"}, recovery.NewPattern(errnoHead + `(?:(?:listen|bind|connect|open|mkdir|unlink|rename|scandir|copyfile|spawn) )?(?:EACCES|EPERM|EROFS)\b`), strict},
	{"os-error-permission", recovery.PermissionDenied, []string{"os error 13", "os error 1)", "os error 30", "(13: permission", "errno 13"}, recovery.NewPattern(`^(?i)(?:[\w.]*error|caused by|failed|fatal|could not|cannot|unable|[\w./-]+|\s*\d+)\b[^:]{0,60}:.*\(os error (?:1|13|30)\)|^E: .*\(13: Permission denied\)|^(?:[\w.]*Error: |ERROR: .*|[\w./-]+: )?\[Errno 13\]|^(?i:error|failed|could not|cannot|unable)\b[^:]{0,80}: \[Errno 13\]`), strict},
	{"open-denied", recovery.PermissionDenied, []string{"permission denied", "operation not permitted", "read-only file system"}, recovery.NewPattern(pathError + `(?:permission denied|operation not permitted|read-only file system)\.?$`), strict},
	{"need-root", recovery.PermissionDenied, []string{"superuser", "root", "sudoers", "privilege", "administrator", "elevat"},
		recovery.NewPattern(`(?i)^(?:\S{1,60}: .{0,160}?|(?:\S+ )?(?:error|you|this|please|must|only|permission|are|requires?|insufficient|a|run)\b.{0,120}?)?(?:\b|^)(?:must be (?:the )?(?:superuser|root|run as root)|are you root\?|requires? (?:superuser|root|administrator|elevated|elevation)|you (?:must|need to) be root|only root can|not in the sudoers file|need to be (?:run as )?root|this command has to be run (?:under the root user|with superuser)|insufficient privileges?|run as administrator|a required privilege is not held|you cannot perform this operation unless you are root)`), strict},
	{"sudo-password", recovery.PermissionDenied, []string{"sudo: "}, recovery.NewPattern(`^sudo: (?:a password is required|a terminal is required|no tty present|sorry, )`), strict},
	{"public-key", recovery.PermissionDenied, []string{"permission denied ("}, recovery.NewPattern(`^(?:\S+: )?Permission denied \((?:publickey|password|keyboard|gssapi)[\w,-]*\)`), strict},
	{"windows-denied", recovery.PermissionDenied, []string{"access is denied", "is denied", "unauthorizedaccess", "accessdenied", "permissiondenied"},
		recovery.NewPattern(`^Access is denied\.?$|Access to the (?:path|registry key) .{0,300}is denied|\bUnauthorizedAccessException\b|\bUnauthorizedAccess\b|java\.nio\.file\.AccessDeniedException|PermissionDenied: \(`), strict},
	{"service-denied", recovery.PermissionDenied, []string{"access denied for user", "permission denied for", "accessdenied", "permission_denied", "permission denied while trying", "not authorized to perform", "unauthorizedoperation", "permission to ", "forbidden:"},
		recovery.NewPattern(`Access denied for user|permission denied for (?:table|schema|relation|database|sequence|view|function)|\(AccessDenied(?:Exception)?\)|PERMISSION_DENIED|permission denied while trying to connect|not authorized to perform|\(UnauthorizedOperation\)|ERROR: Permission to \S+ denied to|Error from server \(Forbidden\)`), strict},
	// Databases: PostgreSQL, MySQL, SQLite, Redis, MongoDB.
	{"database-denied", recovery.PermissionDenied, []string{"must be owner", "must be superuser", "command denied", "noperm", "noauth", "wrongpass", "readonly database", "not authorized on", "authentication failed for user"},
		recovery.NewPattern(`^(?:\S{1,80}: )*(?:ERROR|FATAL): +(?:must be (?:owner of|superuser)|(?:password|peer|ident) authentication failed for user)|^ERROR \d+ \(\w+\).*: \w[\w ]{0,40} command denied to user|^(?:\(error\) |-)?(?:NOPERM|NOAUTH|WRONGPASS) \S|\battempt to write a readonly database\b|^Mongo\w*Error: not authorized on `), piped},
	{"http-permission", recovery.PermissionDenied, []string{"401", "403"}, recovery.NewPattern(httpForm + `(?:401|403)\b`), strict},
	{"denied-other-languages", recovery.PermissionDenied, []string{"keine berechtigung", "zugriff verweigert", "permission non accordée", "accès refusé", "permiso denegado", "acceso denegado", "权限不够", "拒绝访问", "許可がありません", "アクセスが拒否", "permissão negada", "acesso negado", "permesso negato", "accesso negato", "отказано", "허가 거부", "액세스가 거부", "vorgang nicht zulässig", "opération non permise", "operación no permitida", "不允许的操作", "操作不允许", "権限がありません", "許可されていない操作"},
		recovery.NewPattern(`(?i)(?:Keine Berechtigung|Zugriff verweigert|Permission non accordée|Accès refusé|Permiso denegado|Acceso denegado|权限不够|拒绝访问|許可がありません|アクセスが拒否されました|Permissão negada|Acesso negado|Permesso negato|Accesso negato|Отказано в доступе|허가 거부|액세스가 거부|Vorgang nicht zulässig|Der Vorgang ist nicht (?:zulässig|erlaubt)|Opération non permise|Operación no permitida|不允许的操作|操作不允许|権限がありません|許可されていない操作です)[。.)]*$`), strict},
	// A server that serves some directories only.
	{"path-outside", recovery.PermissionDenied, []string{"outside", "not within", "not in the allowed", "not in allowed"},
		recovery.NewPattern(`(?i)^(?:(?:\w*error|mcp tool call failed): )*(?:access (?:is )?denied|permission denied|forbidden)\b.{0,200}\b(?:outside|not within|not in)\b.{0,60}\b(?:allowed|permitted|base|root|working|workspace|project|sandbox)`), strict},
	// A file tool that serves a workspace only.
	{"path-elsewhere", recovery.PermissionDenied, []string{"outside ", "not in workspace"},
		recovery.NewPattern(`(?i)^(?:error: )?(?:(?:the )?(?:file |attempted )?path\b.{0,400}?\b(?:resolves|is|lies|points) (?:to a location )?outside (?:of )?(?:the |your )?(?:allowed|permitted|workspace|project|working|root|current)|path not in workspace\b)`), strict},
	// A file tool's own words for one path.
	{"path-denied", recovery.PermissionDenied, []string{"access denied: ", "access denied to "}, recovery.NewPattern(`^(?:Error: )?Access denied(?::| to) ['"\x60]?(?:~?/|[A-Z]:\\|\.{1,2}/)[^\s'"\x60]{0,300}['"\x60]?\.?$`), strict},
	// An agent's list of files that it does not open.
	{"path-ignored", recovery.PermissionDenied, []string{"ignore"}, recovery.NewPattern(`(?i)^(?:error: )?access to \S{1,300} is (?:blocked|denied|restricted|not allowed) by (?:the |your )?\.?\w{1,30}ignore\b`), strict},
	{"permission-words", recovery.PermissionDenied, []string{"permission denied", "access denied", "not permitted", "access is denied", "eacces", "eperm", "insufficient permission"},
		recovery.NewPattern(`(?i)\b(?:permission denied|access (?:is )?denied|operation not permitted|EACCES|EPERM|insufficient permissions?)\b`), loose},
}

var diskRules = []rule{
	{"errno-disk", recovery.DiskFull, []string{"no space left on device", "disk quota exceeded", "file too large"},
		recovery.NewPattern(`(?i)^(?:[\w.+/@ -]{1,80}(?:\[\d+\])?:\s|\S.{0,300}[:(]\s?|I/O error: |E: .{0,200}|fatal: .{0,200}|error: .{0,200}|.{0,80}\berror:? )?.{0,200}(?:No space left on device|Disk quota exceeded)` + `(?:[ .,)"'\]].{0,80})?$`), strict},
	{"runtime-disk", recovery.DiskFull, []string{"enospc", "edquot"}, recovery.NewPattern(errnoHead + `(?:ENOSPC|EDQUOT)\b`), piped},
	{"os-error-disk", recovery.DiskFull, []string{"os error 28", "errno 28", "sqlstate 53100"}, recovery.NewPattern(`\(os error 28\)|\[Errno 28\]|SQLSTATE 53100`), strict},
	{"disk-form", recovery.DiskFull, []string{"disk is full", "not enough space", "database or disk", "disk full", "enough free space", "disk space", "not enough disk", "filesystem", "failed with enospc", "diskspace", "winerror 112", "insufficient space", "insufficient free", "not enough free", "outofdiskspace"},
		recovery.NewPattern(`(?i)\bdatabase or disk is full\b|^There is not enough space on the disk|There is not enough space on the disk\.|\bE: You don't have enough free space in\b|^\S+: (?:.{0,80}: )?disk full[.!]?$|\bnot enough (?:free )?disk space\b|\binsufficient disk space\b|\bout of disk ?space\b|^\S.{0,300}\(disk full\?\)|\[WinError 112\]|^(?:\S{1,80}: ){1,3}insufficient (?:free )?space (?:on|in|left|available)\b|\bOutOfDiskSpace\b|^(?:\S{1,80}: ){1,3}not enough (?:free )?(?:disk )?space (?:on|in|left|available)\b|The disk is full|\bfile ?system (?:at |on |for )?\S{1,200} is full\b|\b(?:writes?|failed) with ENOSPC\b`), strict},
	{"disk-other-languages", recovery.DiskFull, []string{"kein speicherplatz", "auf dem gerät", "espace disponible", "aucun espace", "queda espacio", "没有空间", "空き領域", "磁盘空间", "espaço", "spazio", "места", "남은 공간", "kein platz", "genügend speicherplatz", "espace insuffisant", "espacio en", "ディスク"},
		recovery.NewPattern(`(?i)(?:Auf dem Gerät ist kein Speicherplatz mehr verfügbar|Kein Platz mehr auf dem Gerät|nicht genügend Speicherplatz auf dem Datenträger|Aucun espace disponible sur le périphérique|Espace insuffisant sur le disque|No queda espacio en el dispositivo|Espacio en disco insuficiente|设备上没有空间|磁盘空间不足|デバイスに空き領域がありません|ディスクに十分な空き領域がありません|Não há espaço disponível no dispositivo|Spazio esaurito sul device|На устройстве не осталось свободного места|장치에 남은 공간이 없음)`), strict},
	{"disk-words", recovery.DiskFull, []string{"no space left", "disk full", "disk quota", "enospc", "disk is full", "not enough space", "insufficient space"},
		recovery.NewPattern(`(?i)\b(?:no space left|disk (?:is )?full|disk quota exceeded|ENOSPC|not enough space|insufficient space)\b`), loose},
}

var fileRules = []rule{
	{"docker-context", recovery.FileNotFound, []string{"prepare context"}, recovery.NewPattern(`^(?:ERROR: )?unable to prepare context: (?:.*: no such file or directory|path "[^"]{1,300}" not found)$`), piped},
	// What COPY names is not in the context of the build.
	{"docker-copy", recovery.FileNotFound, []string{"checksum of ref", "compute cache key", "copy failed"},
		recovery.NewPattern(`\bfailed to (?:calculate checksum of ref|compute cache key)\b.{0,400}"/[^"]{0,300}"(?: not found)?: not found|^COPY failed: .{0,200}(?:no such file or directory|file not found in build context)`), strict},
	{"named-directory", recovery.FileNotFound, []string{"no such directory", "no such folder"}, recovery.NewPattern(`(?i)^(?:[\w ,.:/-]{0,120}[,:] )?no such (?:directory|folder):? ['"‘\x60]?(?:~?/|\.{1,2}/|[A-Z]:\\)\S{1,300}$`), strict},
	{"errno-file", recovery.FileNotFound, []string{"no such file", "not a directory"},
		recovery.NewPattern(program + `(?i)\b(?:No such file(?: or directory)?|Not a directory)` + ending), strict},
	{"runtime-file", recovery.FileNotFound, []string{"enoent", "enotdir"}, recovery.NewPattern(errnoHead + `(?:ENOENT|ENOTDIR)\b`), strict},
	{"os-error-file", recovery.FileNotFound, []string{"os error 2)", "os error 3)", "errno 2]"}, recovery.NewPattern(`^(?i)(?:[\w.]*error|caused by|failed|fatal|could not|cannot|unable|[\w./-]+|\s*\d+)\b[^:]{0,60}:.*\(os error [23]\)|^(?:[\w.]*Error: |[\w./-]+: (?:can't open file .*)?)?\[Errno 2\]|^(?i:error|failed|could not|cannot|unable)\b[^:]{0,80}: \[Errno 2\]`), strict},
	{"ruby-file", recovery.FileNotFound, []string{"errno::enoent", "(loaderror)"}, recovery.NewPattern(`No such file or directory.*(?:\(Errno::ENOENT\)|\(LoadError\))|cannot load such file -- /`), strict},
	{"zsh-cd", recovery.FileNotFound, []string{"no such file or directory: "}, recovery.NewPattern(`^(?:[\w().-]+:)*(?:\d+:)? ?(?:cd|source|\.|pushd|zsh)?(?::\d+)?: ?no such file or directory: \S`), strict},
	{"zsh-glob", recovery.FileNotFound, []string{"no matches found"}, recovery.NewPattern(`^(?:zsh|fish)?(?::\d+)?: ?no matches found: \S`), strict},
	{"cannot-access", recovery.FileNotFound, []string{"cannot", "can't", "could not", "couldn't", "no such", "does not exist", "not found", "did not match", "unable to", "doesn't exist"},
		recovery.NewPattern(`^(?:(?:unzip|gunzip|gzip|tar|python\d?(?:\.\d+)?|\S*/python\d?(?:\.\d+)?|ERROR|error|E|fatal|go|node|make|Error|docker|nano|vim|pytest|cc1|gcc|ld|ffmpeg|warning|xcrun|bash|perl|ruby|php|tsc|eslint)\b[^:\n]{0,60}:\s+)?(?:\*\*\* )?(?:.{0,60}\bcannot find or open \S|[Cc]an't open (?:file|perl script) ['"]|(?:Could not|Cannot|cannot|could not) open (?:requirements file|input file|file)\b|(?:file or directory not found|[Ff]ile not found): \S|go\.mod file not found|pathspec '.{1,200}' did not match any|(?:input )?(?:file|directory|path|folder) ['"‘\x60]?[^\s'"’\x60]{1,200}['"’\x60]? (?:does not exist|not found|doesn't exist|was not found|could not be found)|open \S{1,300}: no such file or directory|stat \S{1,300}: no such file or directory|Cannot find module '(?:/|[A-Z]:)|Could not open input file: |unable to (?:open|find|read|locate) (?:file|input file|path)\b|failed to (?:read|open) (?:file|dockerfile|the file|Dockerfile)\b.{0,200}(?:no such|not exist|not found)|no such file or directory:? |invalid path ')`), strict},
	{"tool-file", recovery.FileNotFound, []string{"not found", "does not exist", "no such", "doesn't exist", "not exist", "could not be found", "could not be located", "cannot find", "could not find", "no file"},
		recovery.NewPattern(`(?i)^(?:(?:error|cmake error|tool error|failed|invalid path|invalid .path. parameter|errors?:)[:!]? ?)*(?:(?:error|failed|could not|cannot|unable)[^:]{0,80}: )?(?:(?:the )?(?:specified |requested |given |source |target |input |search )?(?:\w{2,5} )?(?:file|path|directory|folder)(?: path)?(?::? ?['"‘\x60(]?[^\s'"’\x60)]{1,300}['"’\x60)]?)? ?(?:does not exist|doesn't exist|was not found|not found|could not be (?:found|located)|is not found|not exist)|no (?:such )?file (?:or directory )?(?:found )?(?:at|named|exists|with)\b|(?:could not|cannot|couldn't) find (?:the )?(?:file|path|directory|folder)\b|the path ['"\x60]?/\S+ does not exist)`), piped},
	{"windows-file", recovery.FileNotFound, []string{"system cannot find", "cannot find path", "could not find file", "could not find a part of the path", "file not found", "itemnotfound", "nosuchfileexception", "filenotfoundexception"},
		recovery.NewPattern(`The system cannot find the (?:file|path|drive) specified|Cannot find path '.{1,300}' because it does not exist|Could not find (?:file|a part of the path)\b|^File Not Found$|\bItemNotFoundException\b|\b(?:NoSuch|)FileNotFoundException\b|\bNoSuchFileException\b`), strict},
	// A relative name is a module of the program, unless it is a file of data.
	{"node-module", recovery.FileNotFound, []string{"cannot find module"}, recovery.NewPattern(`^(?:Error(?: \[\w+\])?: )?Cannot find module '(?:/|[A-Z]:\\|\.{1,2}/[^']{1,200}\.(?:json5?|ya?ml|toml|txt|node|wasm|csv|html|css|sql)')`), strict},
	{"open-missing", recovery.FileNotFound, []string{"no such file or directory", "not a directory"}, recovery.NewPattern(pathError + `(?:no such file or directory|not a directory)\.?$`), strict},
	{"zip-name", recovery.FileNotFound, []string{"name not matched"}, recovery.NewPattern(`^\s*zip warning: name not matched: \S`), strict},
	{"curl-file", recovery.FileNotFound, []string{"curl: (26)", "curl: (37)"}, recovery.NewPattern(`^curl: \((?:26|37)\)`), strict},
	{"compiler-include", recovery.FileNotFound, []string{"no such file or directory"}, recovery.NewPattern(`^\S+:\d+:\d+: fatal error: \S+: No such file or directory`), strict},
	{"file-other-languages", recovery.FileNotFound, []string{"datei oder verzeichnis", "angegebene datei", "angegebenen pfad", "fichier ou dossier", "fichier spécifié", "chemin d", "archivo o el directorio", "fichero o el directorio", "fichero o directorio", "archivo o directorio", "archivo especificado", "ruta especificada", "没有那个文件", "找不到指定的", "ファイルやディレクトリ", "指定されたファイル", "指定されたパス", "arquivo ou diretório", "file o directory", "файла или каталога", "파일이나 디렉터리", "não pode encontrar", "указанный файл", "path, da er", "da er nicht vorhanden", "找不到路径", "そのようなファイル"},
		recovery.NewPattern(`(?i)(?:Datei oder Verzeichnis nicht gefunden|Das System kann (?:die angegebene Datei|den angegebenen Pfad) nicht finden|kann nicht gefunden werden, da er nicht vorhanden|Aucun fichier ou dossier de ce (?:type|nom)|Le (?:fichier|chemin d['’]accès) spécifié est introuvable|introuvable.{0,30}chemin d|No existe el (?:archivo|fichero) o (?:el )?directorio|El sistema no puede encontrar (?:el archivo especificado|la ruta especificada)|没有那个文件或目录|系统找不到指定的(?:文件|路径)|找不到路径|そのようなファイルやディレクトリはありません|指定された(?:ファイル|パス)が見つかりません|Arquivo ou diretório (?:não encontrado|inexistente)|File o directory non esistente|Нет такого файла или каталога|Не удается найти указанный файл|그런 파일이나 디렉터리가 없습니다|O sistema não pode encontrar)`), strict},
	{"path-missing", recovery.FileNotFound, []string{"does not exist", "could not find", "couldn't find", "cannot find", "can't find", "unable to", "cannot ", "could not ", "couldn't ", "can't "},
		recovery.NewPattern(`(?i)(?:\b(?:path|file|manifest|directory|folder|jarfile|script)\b[^:]{0,20}? ['"\x60‘]?` + pathForm + `['"\x60’]? does not exist|\b(?:could not|couldn't|cannot|can't|unable to) (?:find|open|locate|access) (?:the )?(?:(?:jar|input|source|config\w*|specified) ?)?(?:file |path |directory |script )?['"\x60‘]?` + pathForm + `['"\x60’]?[.,]?(?:$| (?:for|in|at)\b))`), loose},
	{"file-words", recovery.FileNotFound, []string{"no such file", "file not found", "enoent", "path not found", "file does not exist", "path does not exist", "directory does not exist", "directory not found", "cannot find the file"},
		recovery.NewPattern(`(?i)\b(?:no such file|file not found|ENOENT|path not found|(?:file|path|directory) does not exist|directory not found|cannot find the file)\b`), loose},
}

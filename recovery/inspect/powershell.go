package inspect

import "github.com/rebound-llm/rebound/recovery"

// powershellRules read the end of an error record: the id of the error and the
// exception, in all languages the same. That an object was not found says nothing: it
// may be a process, a service, a module.
var powershellRules = []rule{
	{"record-command", recovery.CommandNotFound, []string{"commandnotfoundexception"}, recovery.NewPattern(record + `CommandNotFoundException\b`), piped},
	{"record-file", recovery.FileNotFound, recordIDs, recovery.NewPattern(record + `(?:(?:Path|Item|File|Directory|Container|Drive)(?:NotFound|DoesNotExist|NotExist)\w*|\w*(?:ItemNotFound|FileNotFound|DirectoryNotFound|DriveNotFound)(?:Error|Exception)?|GetContentReaderFileNotFoundError)\b`), piped},
	{"record-denied", recovery.PermissionDenied, recordIDs, recovery.NewPattern(record + `(?:\w*UnauthorizedAccess\w*|\w*AccessDenied\w*|\w*PermissionDenied\w*|System\.UnauthorizedAccessException|RemoveFileSystemItemUnAuthorizedAccess)\b|CategoryInfo\s*: PermissionDenied: `), piped},
	{"record-argument", recovery.InvalidArguments, recordIDs, recovery.NewPattern(record + `(?:NamedParameterNotFound|PositionalParameterNotFound|AmbiguousParameter(?:Set)?|MissingMandatoryParameter|MissingArgument|CannotConvertArgument\w*|Parameter\w*(?:Validation|Transformation)\w*|ParameterBinding\w*)\b`), piped},
	{"record-syntax", recovery.SyntaxError, []string{"categoryinfo"}, recovery.NewPattern(`^\s*\+ CategoryInfo\s*: ParserError: `), piped},
	{"record-timeout", recovery.ToolTimeout, []string{"categoryinfo"}, recovery.NewPattern(`^\s*\+ CategoryInfo\s*: OperationTimeout: `), piped},
	{"record-connection", recovery.NetworkError, []string{"categoryinfo"}, recovery.NewPattern(`^\s*\+ CategoryInfo\s*: ConnectionError: `), piped},
}

// record is the last line of a record, up to the id.
const record = `^\s*\+ FullyQualifiedErrorId\s*: `

// recordEnd is that line, whatever the id.
var recordEnd = recovery.NewPattern(record + `\S`)

var recordIDs = []string{"fullyqualifiederrorid", "categoryinfo"}

package inspect

import (
	"github.com/rebound-llm/rebound/recovery"
)

// Entries of logs tell of other things than of this call: they stood in a file
// that was read, or a server that goes on printed them. They never decide alone. In
// a call that is known to have failed the last one may say why: programs that log
// say there what they end with.

// levels are the names of the levels of log entries.
const levels = `(?:TRACE|DEBUG|DBG|INFO|INF|NOTICE|WARN(?:ING)?|WRN|ERROR|ERR|FATAL|FTL|CRIT(?:ICAL)?|ALERT|EMERG(?:ENCY)?|PANIC|SEVERE|LOG)`

// logEntry begins with a time, as entries do: ISO dates, nginx, Go's log, klog, syslog and
// journald, Apache, the kernel, a clock and a level, logfmt, JSON, behind the name of a container or
// of the file in which it was found.
var logEntry = recovery.NewPattern(`^\s*(?:[\w.-]{1,40} +\| +)?(?:[^\s:]{1,200}:)?(?:\d{1,7}[:-])?(?:` +
	`[\[(]?\d{4}[-/.]\d\d[-/.]\d\d[T _]\d\d:\d\d` +
	`|[\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?[\])]? +(?:\S{1,40} +){0,2}[\[(<]?(?i:` + levels + `)\b` +
	`|[IWEFD]\d{4} \d\d:\d\d:\d\d` +
	`|(?:<\d{1,3}>)?[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d ` +
	`|\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d` +
	`|\[ *\d{1,7}\.\d{6}\] ` +
	`|\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[\d\d/` +
	`|(?:time|ts|timestamp|level|lvl|severity)=\S` +
	`|\{"(?:level|lvl|severity|time|ts|timestamp|@timestamp|msg|logger|log\.level)": ?["\d]` +
	`|\[?` + levels + `\]? +[\[(]?\d{4}[-/]\d\d[-/]\d\d` +
	`)`)

// logged reports an entry of a log.
func logged(line string) bool {
	return logEntry.MatchString(line) && !wgetStatus.MatchString(line)
}

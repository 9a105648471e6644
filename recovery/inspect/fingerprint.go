package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/trajectory"
)

// volatile lists what differs between occurrences of one failure, in the order of removal.
var volatile = []struct {
	re   *recovery.Pattern
	with string
}{
	{recovery.NewPattern(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{recovery.NewPattern(`\d{4}-\d\d-\d\d(?:[t _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?(?:z|[+-]\d\d:?\d\d)?)?`), "<time>"},
	{recovery.NewPattern(`\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b`), "<time>"},
	{recovery.NewPattern(`\b0x[0-9a-f]+\b`), "<hex>"},
	// Temporary names: /tmp/tmpab12, /var/folders/…, tmp_code_9f…, pytest-of-root/pytest-3.
	{recovery.NewPattern(`/(?:private/)?var/folders/[^\s'":,)]+/`), "/tmp/"},
	{recovery.NewPattern(`/tmp/(?:tmp[\w.-]*|[\w-]*[._-][0-9a-z]{6,}|[0-9a-f]{6,})`), "/tmp/<tmp>"},
	{recovery.NewPattern(`\btmp[_-]?(?:code[_-])?[0-9a-z_]*\d[0-9a-z_]*`), "<tmp>"},
	{recovery.NewPattern(`\b[0-9a-f]{7,128}\b`), "<hex>"},
	{recovery.NewPattern(`\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)\b`), "<duration>"},
	// Line and column after a file name.
	{recovery.NewPattern(`(\.[a-z]{1,5}):\d+(?::\d+)?`), "$1:#"},
	{recovery.NewPattern(`\b(line|lines|column|col|char|position|byte|pid|port|offset|attempt|try|retry|request)([ =:#]+)\d+`), "$1$2#"},
	{recovery.NewPattern(`(^|[\s=:,;()\[\]<>'"@#$])-?\d+(?:[.,]\d+)*`), "$1#"},
	{recovery.NewPattern(`\s\s+|[\t\n\f\r]`), " "}, // leaves single spaces alone, which is the most common case
}

// maxFingerprint limits the text of a fingerprint, in bytes.
const maxFingerprint = 500

// normalise removes the parts of an error that differ between occurrences.
func normalise(line string) string {
	line = strings.ToLower(strings.TrimSpace(line[:min(len(line), maxFingerprint)]))
	for i := range volatile {
		line = volatile[i].re.ReplaceAllString(line, volatile[i].with)
	}
	return line
}

// fingerprint returns a hash of a failure, never 0: of the tool, the category and the normalised error.
// Repetitions of one failure have the same fingerprint.
func fingerprint(tool string, category recovery.Category, line string) uint64 {
	return trajectory.Hash(tool, string(category), normalise(line))
}

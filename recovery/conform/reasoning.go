package conform

import (
	"strconv"
	"strings"
)

// indexes reads which elements of reasoning go, as recovery writes it: "0-3,7-9" are
// 0 to 2, and 7 and 8. nil is all of them, which is what an unknown text means too.
func indexes(field string) func(n int) bool {
	if field == "" {
		return nil
	}
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(field, ",") {
		a, b, ok := strings.Cut(part, "-")
		from, err1 := strconv.Atoi(a)
		to, err2 := strconv.Atoi(b)
		if !ok || err1 != nil || err2 != nil {
			return nil
		}
		spans = append(spans, span{from, to})
	}
	return func(n int) bool {
		for _, s := range spans {
			if n >= s.from && n < s.to {
				return true
			}
		}
		return false
	}
}

package configs

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// example describes a value of the type, for messages.
func example(t reflect.Type) string {
	switch {
	case t == durationType:
		return "single value (like 30s)"
	case t.Kind() == reflect.Bool:
		return "single value (true or false)"
	case t.Kind() == reflect.String:
		return "single value (text)"
	case t.Kind() == reflect.Struct:
		return "map with some of " + strings.Join(names(fields(t)), ", ")
	case t.Kind() == reflect.Map:
		return "map of name: value"
	case t.Kind() == reflect.Slice:
		return "list, as in [a, b] or with a line that begins with - for each entry"
	}
	return "single value (a number)"
}

// setScalar parses a scalar into v; with size set, integers are bytes and may have a unit.
func setScalar(n ast.Node, v reflect.Value, size bool) error {
	s := text(n)
	switch {
	case v.Type() == durationType:
		d, err := parseDuration(s)
		if err == nil {
			v.SetInt(int64(d))
		}
		return err
	case v.Kind() == reflect.String:
		v.SetString(s)
		return nil
	case v.Kind() == reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return nil
		}
		return fmt.Errorf("must be true or false, without quotes, not %s", quote(s))
	case v.CanInt():
		var i int64
		var err error
		if size {
			i, err = parseSize(s)
		} else {
			i, err = parseInt(s)
		}
		if err == nil && v.OverflowInt(i) {
			err = fmt.Errorf("%s is too large", quote(s))
		}
		if err == nil {
			v.SetInt(i)
		}
		return err
	case v.CanFloat():
		f, err := parseFloat(s)
		if err == nil {
			v.SetFloat(f)
		}
		return err
	}
	return fmt.Errorf("cannot be set from a file")
}

// quote renders a value for a message, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return strconv.Quote(s)
}

var (
	wholeNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*(_[0-9]+)*)$`)
	anyNumber   = regexp.MustCompile(`^[-+]?([0-9][0-9_]*)?\.?[0-9]+$`)
	longUnits   = regexp.MustCompile(`^([0-9.]+)\s*(d|days?|w|weeks?|min|minutes?|mins?|secs?|seconds?|hours?|hrs?|ms|s|m|h)$`)
	sizeText    = regexp.MustCompile(`^([0-9]+)(?:\.([0-9]{1,9}))?\s*([A-Za-z]*)$`)
)

// parseDuration reads a duration with a unit; 0 needs none. A shorter one than a millisecond is none that anybody means: with
// some settings it would fail every request.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d != 0 && d.Abs() < time.Millisecond {
		return 0, fmt.Errorf("%s is too short: write at least 1ms", quote(s))
	}
	if err == nil {
		return d, nil
	}
	if anyNumber.MatchString(s) {
		return 0, fmt.Errorf("%s has no unit: write %ss for seconds, %sms for milliseconds", quote(s), s, s)
	}
	if m := longUnits.FindStringSubmatch(s); m != nil {
		unit := m[2]
		switch {
		case unit == "ms":
		case strings.HasPrefix(unit, "d"), strings.HasPrefix(unit, "w"):
			return 0, fmt.Errorf("%s has a unit that is too long: write hours, like 24h", quote(s))
		default:
			unit = unit[:1]
		}
		if m[1]+unit == s {
			return 0, fmt.Errorf("%s is too long: write at most %dh", quote(s), math.MaxInt64/time.Hour)
		}
		return 0, fmt.Errorf("%s is not a duration: write %s%s", quote(s), m[1], unit)
	}
	return 0, fmt.Errorf("%s is not a duration: write it like 10s, 1m30s or 500ms", quote(s))
}

// parseSize reads bytes: 1048576, 1MiB, 1.5MiB, 10MB.
func parseSize(s string) (int64, error) {
	m := sizeText.FindStringSubmatch(strings.ReplaceAll(s, "_", ""))
	if m == nil {
		return 0, fmt.Errorf("%s is not a size: write bytes, or a number with KiB, MiB, GiB, KB, MB or GB", quote(s))
	}
	var unit uint64
	switch strings.ToLower(m[3]) {
	case "", "b":
		unit = 1
	case "kib":
		unit = 1 << 10
	case "mib":
		unit = 1 << 20
	case "gib":
		unit = 1 << 30
	case "kb":
		unit = 1e3
	case "mb":
		unit = 1e6
	case "gb":
		unit = 1e9
	case "k", "m", "g":
		u := strings.ToUpper(m[3])
		return 0, fmt.Errorf("%s could mean two sizes: write %siB (1024) or %sB (1000)", quote(s), u, u)
	default:
		return 0, fmt.Errorf("%s has the unknown unit %s: use KiB, MiB, GiB, KB, MB or GB", quote(s), quote(m[3]))
	}
	tooLarge := fmt.Errorf("%s is too large", quote(s))
	whole, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return 0, tooLarge
	}
	high, low := bits.Mul64(whole, unit)
	if high != 0 || low > math.MaxInt64 {
		return 0, tooLarge
	}
	total := low
	if m[2] != "" {
		part, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil {
			return 0, tooLarge
		}
		scale := uint64(math.Pow10(len(m[2])))
		if part*unit%scale != 0 {
			return 0, fmt.Errorf("%s is not a whole number of bytes", quote(s))
		}
		total += part * unit / scale
	}
	if total > math.MaxInt64 {
		return 0, tooLarge
	}
	return int64(total), nil
}

func parseInt(s string) (int64, error) {
	if wholeNumber.MatchString(s) {
		i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%s is too large", quote(s))
		}
		return i, err
	}
	return 0, fmt.Errorf("%s is not a whole number: write digits only, like 1000", quote(s))
}

func parseFloat(s string) (float64, error) {
	if p, ok := strings.CutSuffix(s, "%"); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(p), 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return 0, fmt.Errorf("%s is a percentage: write the share, %s", quote(s), strconv.FormatFloat(f/100, 'g', -1, 64))
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%s is not a number: write it like 0.5", quote(s))
	}
	return f, nil
}

// Duration formats a duration without trailing zero units: 1h instead of 1h0m0s.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// formatSize formats bytes with the largest unit that gives a whole number.
func formatSize(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

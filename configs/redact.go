package configs

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rebound-llm/rebound/proxy/redact"
	"github.com/rebound-llm/rebound/store/redis"
)

// Redacted returns the effective configuration as YAML, in the order of the
// reference, without secrets: keys show the variable or file they come from.
// Settings that are unset and have no default are left out. Except for what was
// redacted, loading the result gives the same configuration.
func (c Config) Redacted() string {
	var b strings.Builder
	render(&b, reflect.ValueOf(c), "", "")
	return b.String()
}

// String is Redacted.
func (c Config) String() string { return c.Redacted() }

// Format keeps secrets out of every verb of package fmt, %#v included.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.Redacted()) }

// LogValue keeps secrets out of structured logs.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.Redacted()) }

// MarshalText keeps secrets out of JSON and other encodings.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.Redacted()), nil }

// render writes the entries of a struct or map.
func render(b *strings.Builder, v reflect.Value, key, indent string) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range fields(v.Type()) {
			if d, ok := v.Interface().(redis.Config); ok && f.name == "url" && d.URLEnv != "" {
				continue // url_env names its variable
			}
			renderEntry(b, f.name, v.FieldByIndex(f.index), joinKey(key, f.name), indent)
		}
	case reflect.Map:
		for _, name := range mapNames(v) {
			renderEntry(b, Scalar(name), v.MapIndex(reflect.ValueOf(name)), childKey(key, name), indent)
		}
	}
}

func renderEntry(b *strings.Builder, name string, v reflect.Value, key, indent string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		v = v.Elem()
	case reflect.Struct:
		var in strings.Builder
		render(&in, v, key, indent+"  ")
		if in.Len() > 0 {
			fmt.Fprintf(b, "%s%s:\n%s", indent, name, in.String())
		}
		return
	case reflect.Map:
		switch {
		case v.Len() > 0:
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			render(b, v, key, indent+"  ")
		case !v.IsNil():
			fmt.Fprintf(b, "%s%s: {}\n", indent, name)
		}
		return
	case reflect.Slice:
		renderList(b, name, v, key, indent)
		return
	case reflect.String:
		if v.Len() == 0 {
			return
		}
	}
	fmt.Fprintf(b, "%s%s: %s\n", indent, name, scalarText(v, key))
}

func renderList(b *strings.Builder, name string, v reflect.Value, key, indent string) {
	switch {
	case v.IsNil():
	case v.Len() == 0:
		fmt.Fprintf(b, "%s%s: []\n", indent, name)
	case v.Type().Elem().Kind() != reflect.Struct:
		texts := make([]string, v.Len())
		for i := range texts {
			texts[i] = scalarText(v.Index(i), key)
		}
		fmt.Fprintf(b, "%s%s: [%s]\n", indent, name, strings.Join(texts, ", "))
	default:
		fmt.Fprintf(b, "%s%s:\n", indent, name)
		for i := range v.Len() {
			var in strings.Builder
			render(&in, v.Index(i), key+"["+strconv.Itoa(i)+"]", indent+"    ")
			// The first line goes after the dash.
			fmt.Fprintf(b, "%s  - %s", indent, strings.TrimPrefix(in.String(), indent+"    "))
		}
	}
}

var plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

func scalarText(v reflect.Value, key string) string {
	switch {
	case v.Type() == durationType:
		return Duration(time.Duration(v.Int()))
	case v.CanInt() && slices.Contains(sizeKeys, key):
		return formatSize(v.Int())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	s := v.String()
	if parent := parentKey(key); strings.HasSuffix(parent, ".headers") || strings.HasSuffix(parent, ".query") {
		if redact.IsSecretName(strings.TrimPrefix(key, parent)) {
			return Scalar(redact.Hidden)
		}
	}
	return Scalar(redact.Value(s))
}

// Scalar returns a string as YAML, in quotes if it would be read as another type.
func Scalar(s string) string {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	if plainText.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

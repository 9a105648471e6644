package configs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rebound-llm/rebound/proxy/redact"
)

// badEnv has the environment variables that the files in testdata/bad use.
var badEnv = environment("SET=good", "SAME=good", "EMPTY=", "NEWLINE=\n", "BEARER=Bearer topsecret", "LINES=topsecret\nb", "SPACE= topsecret")

// TestBadFiles compares whole reports. After -update read the differences: operators
// see these texts.
func TestBadFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			_, err := Load(path, badEnv)
			e, ok := err.(Errors)
			if !ok || len(e) == 0 {
				t.Fatalf("no problems but %v", err)
			}
			got := e.Detail() + "\n"
			if strings.Contains(got, "topsecret") {
				t.Errorf("a secret is shown:\n%s", got)
			}
			compare(t, strings.TrimSuffix(path, ".yaml")+".golden", got)
		})
	}
}

// Problems of the YAML text and of its values are reported together.
func TestEverythingAtOnce(t *testing.T) {
	_, err := Parse("a.yaml", []byte("listen: !!str x\nlog: *nowhere\nlimits: {body: 1M}\nstream:\n  ilde: 1s\nmodels: [a]\ndrain: {}\n"), nil)
	want := `a.yaml:1:9: has the tag !!str: tags are not used here, remove it
a.yaml:2:6: refers to *nowhere, but no &nowhere stands before it
a.yaml:3:16: limits.body: "1M" could mean two sizes: write MiB (1024) or MB (1000)
a.yaml:5:3: stream.ilde: unknown key: did you mean idle?
a.yaml:6:9: models: must be a map of name: value, not a list
a.yaml:7:8: drain: must be a single value (like 30s), not a map`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v", err)
	}
}

// The plain rendering is for logs: one line for each problem.
func TestErrorsAreOneLineEach(t *testing.T) {
	_, err := Parse("a.yaml", []byte("listne: x\nlog: {level: 1s}\n"), nil)
	want := "a.yaml:1:1: listne: unknown key: did you mean listen?\na.yaml:2:14: log.level: \"1s\" is none of debug, info, warn, error"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v", err)
	}
}

func TestBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	var merges strings.Builder
	merges.WriteString("m0: &m0 {a: 1}\n")
	for i := 1; i < 200; i++ {
		fmt.Fprintf(&merges, "m%d: &m%d\n  <<: [%s]\n  k%d: 1\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d, ", i-1), 20), ", "), i)
	}
	var keys strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	var indented strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&indented, "%sk:\n", strings.Repeat(" ", i))
	}
	var rules strings.Builder
	fmt.Fprintf(&rules, "classify:\n  rules:\n    - &r {name: a, any: [%s]}\n", strings.TrimSuffix(strings.Repeat("x, ", 5000), ", "))
	rules.WriteString(strings.Repeat("    - *r\n", 5000))
	const n = 1 << 18
	for name, text := range map[string]string{
		"laughs": laughs.String(), "merges": merges.String(), "rules": rules.String(), "models": "models:\n  " + strings.ReplaceAll(merges.String(), "\n", "\n  "),
		"keys": keys.String(), "indented": indented.String(),
		"brackets": strings.Repeat("[", n), "braces": strings.Repeat("{", n), "dashes": strings.Repeat("- ", n/2),
		"questions": strings.Repeat("? ", n/2), "colons": strings.Repeat("a: ", n/3), "flow colons": "{" + strings.Repeat("a: ", n/3),
		"anchors": strings.Repeat("&a ", n/3), "tags": strings.Repeat("!a ", n/3), "documents": strings.Repeat("---\n", n/4),
		"few brackets": strings.Repeat("[", 19_000), "few colons": strings.Repeat("a: ", 6_000), "few anchors": strings.Repeat("&a ", 9_000),
		"too large": strings.Repeat("#", maxBytes+1), "itself": "a: &a [*a]", "quote": `a: "` + strings.Repeat("x", n/2), "few keys": keys.String()[:70_000],
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse("bomb.yaml", []byte(text), nil)
			if err == nil {
				t.Error("accepted")
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if len(err.Error()) > 100_000 {
				t.Errorf("the report has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	_, err := Parse("a.yaml", []byte(strings.Repeat("x: 1\n", 500)), nil)
	if e := err.(Errors); len(e) != maxProblems+1 || !strings.Contains(e[maxProblems].Message, "and 400 more") {
		t.Errorf("%d problems: %v", len(e), e[len(e)-1])
	}
}

func TestScalars(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "1024": 1024, "64MiB": 64 << 20, "10MB": 10_000_000, "1.5KiB": 1536, "1 GiB": 1 << 30, "2kib": 2048,
		"7b": 7, "0.1MB": 100_000} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "-1", "1M", "1.5", "64MiBs", "1e3", "9223372036854775808", "99999999999GiB", "0.0001KB", "MiB", "1..2MB"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("parseSize(%q) = %d", in, got)
		}
	}
	for in, want := range map[string]time.Duration{"0": 0, "10s": 10 * time.Second, "1m30s": 90 * time.Second, "0.5s": 500 * time.Millisecond, "1ms": time.Millisecond, "2562047h": 2562047 * time.Hour} {
		if got, err := parseDuration(in); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{"30": "write 30s for", "1d": "write hours", "30 s": "write 30s", "5min": "write 5m", "2 hours": "write 2h",
		"1ns": "at least 1ms", "-999us": "at least 1ms", "0.5ms": "at least 1ms", "2562048h": "at most 2562047h", "9999999999999ms": "at most 2562047h", "soon": "like 10s", "": "like 10s", "100 ms": "write 100ms"} {
		if _, err := parseDuration(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseDuration(%q): %v", in, err)
		}
	}
	for in, want := range map[string]string{"5%": "write the share, 0.05", "x": "like 0.5", ".nan": "like 0.5", "inf": "like 0.5", "NaN%": "like 0.5"} {
		if _, err := parseFloat(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseFloat(%q): %v", in, err)
		}
	}
	for in, ok := range map[string]bool{"5": true, "100_000": true, "-1": true, "010": false, "1.5": false, "1e3": false, "0x10": false,
		"99999999999999999999": false} {
		if _, err := parseInt(in); (err == nil) != ok {
			t.Errorf("parseInt(%q): %v", in, err)
		}
	}
	for _, d := range []time.Duration{0, time.Second, time.Minute, time.Hour, 90 * time.Second, 1500 * time.Millisecond, 3*time.Hour + 5*time.Second,
		10 * time.Minute, 50 * time.Millisecond} {
		if got, err := parseDuration(Duration(d)); err != nil || got != d {
			t.Errorf("%v is written as %s", d, Duration(d))
		}
	}
	for _, n := range []int64{0, 1, 1000, 1024, 1500, 64 << 20, 10_000_000, 1 << 40} {
		if got, err := parseSize(formatSize(n)); err != nil || got != n {
			t.Errorf("%d is written as %s", n, formatSize(n))
		}
	}
}

// So far every int64 setting is a size in bytes. For a new one that is not, change this test.
func TestSizeKeys(t *testing.T) {
	have := map[string]bool{}
	schema(reflect.TypeFor[Config](), "", func(key, _ string, typ reflect.Type) {
		if have[key] = true; typ.Kind() == reflect.Int64 && typ != durationType && !strings.Contains(strings.Join(sizeKeys, " "), key) {
			t.Errorf("%s is not in sizeKeys", key)
		}
	})
	for _, key := range sizeKeys {
		if !have[key] {
			t.Errorf("there is no %s", key)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"listen", "upstreams", "default_upstream", "keepalive_after", "url", "mode"}
	for in, want := range map[string]string{
		"listne": "listen", "upstream": "upstreams", "defaultUpstream": "default_upstream", "keep_alive_after": "keepalive_after",
		"URL": "url", "uri": "url", "moed": "mode", "zebra": "", "": "", "x": "",
	} {
		if got := nearest(in, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for in, want := range map[string]bool{"127.0.0.1:1": true, "127.9.9.9:1": true, "localhost:1": true, "[::1]:1": true,
		":8080": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.com:1": false, "[fe80::1%lo]:1": false} {
		if loopback(in) != want {
			t.Errorf("loopback(%q) = %v", in, !want)
		}
	}
}

func TestParentKey(t *testing.T) {
	for in, want := range map[string]string{"a": "", "a.b": "a", "a.b[0]": "a.b", "a.b[0].c": "a.b[0]", `a["x.y"].z`: `a["x.y"]`, `a["x.y[0]"]`: "a",
		`a["x\"].b"]`: "a"} {
		if got := parentKey(in); got != want {
			t.Errorf("parentKey(%s) = %s, want %s", in, got, want)
		}
	}
}

// certificate writes ca.pem, client.pem and client.key.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: der}, "client.pem": {Type: "CERTIFICATE", Bytes: der}, "client.key": {Type: "PRIVATE KEY", Bytes: keyDER},
		"server.pem": {Type: "CERTIFICATE", Bytes: der}, "server.key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		write(t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Reference()))
	for _, glob := range []string{"testdata/bad/*.yaml", "examples/*.yaml"} {
		paths, _ := filepath.Glob(glob)
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("a: &a [*a, !!str x, {<<: *a}]\n? [x]\n: y\n--- >\n z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "file") || strings.Contains(string(data), "client_") {
			t.Skip("it may read this machine's files")
		}
		start := time.Now()
		c, err := Parse("fuzz.yaml", data, environment("SET=topsecret"))
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
		if (c == nil) == (err == nil) {
			t.Fatal(c, err)
		}
		if err != nil {
			e := err.(Errors)
			if len(e) == 0 || e.Error() == "" || e.Detail() == "" {
				t.Fatalf("an empty report: %#v", e)
			}
			return
		}
		text := c.Redacted()
		if strings.Contains(text, "topsecret") && !strings.Contains(string(data), "topsecret") {
			t.Fatal("a secret is shown")
		}
		if strings.Contains(text, redact.Hidden) {
			return
		}
		again, err := Parse("fuzz.yaml", []byte(text), environment("SET=topsecret"))
		if err != nil {
			t.Fatalf("%v\nof\n%s", err, text)
		}
		if second := again.Redacted(); second != text {
			t.Fatalf("first\n%s\nthen\n%s", text, second)
		}
	})
}

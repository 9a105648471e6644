package configs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rebound-llm/rebound/store/redis"
)

const (
	maxSecret      = 64 << 10 // bytes of a file that holds one secret
	maxCertificate = 4 << 20
)

// source is a file that a configuration was read from, with a hash of its content.
type source struct {
	path  string
	limit int64             // bytes; 0 for the configuration itself
	sum   [sha256.Size]byte // of the content, or of the error
}

func newSource(path string, limit int64, data []byte, err error) source {
	h := sha256.New()
	if err != nil {
		fmt.Fprintf(h, "error: %s", err)
	} else {
		h.Write([]byte("data: "))
		h.Write(data)
	}
	s := source{path: path, limit: limit}
	h.Sum(s.sum[:0])
	return s
}

// readFile reads a file that the configuration names and records it for the watcher.
// It accepts only regular files: a pipe would block the start.
func (r *reader) readFile(path string, limit int64) ([]byte, error) {
	data, err := readRegular(path, limit)
	r.sources = append(r.sources, newSource(path, limit, data, err))
	return data, err
}

func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	data, err := readBounded(path, limit+1)
	if err == nil && int64(len(data)) > limit {
		return nil, errors.New("is too large for what it should hold")
	}
	return data, err
}

// resolve makes a path relative to the configuration's folder.
func (r *reader) resolve(path *string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(r.dir, *path)
	}
}

// secrets reads every secret and checks every certificate that the
// configuration names, and makes their paths absolute or relative to the
// working directory.
func (r *reader) secrets(c *Config, env Env) {
	auth := &c.Proxy.Auth
	for i := range auth.Keys {
		k := &auth.Keys[i]
		k.Value = r.secret(fmt.Sprintf("auth.keys[%d]", i), "env", "file", k.Env, &k.File, env)
	}
	if auth.AdminEnv == "" || auth.AdminFile == "" {
		auth.AdminToken = r.secret("auth", "admin_env", "admin_file", auth.AdminEnv, &auth.AdminFile, env)
	}
	if rec := &c.Recording; rec.KeyEnv == "" || rec.KeyFile == "" {
		rec.Key = r.secret("recording", "key_env", "key_file", rec.KeyEnv, &rec.KeyFile, env)
	}
	edge := &c.Proxy.TLS
	edge.Certificate = r.keyPair("tls", "cert", "key", &edge.Cert, &edge.Key)
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		u := c.Upstreams[name]
		key := childKey("upstreams", name)
		for i := range u.Keys {
			k := &u.Keys[i]
			if len(k.Command) > 0 && k.Env == "" && k.File == "" {
				continue // the command runs when the key is needed
			}
			k.Value = r.secret(fmt.Sprintf("%s.keys[%d]", key, i), "env", "file", k.Env, &k.File, env)
		}
		r.certificates(key, &u.CAFile, &u.ClientCert, &u.ClientKey)
		c.Upstreams[name] = u
	}
	if hook := &c.Planner.Webhook; hook.SecretEnv == "" || hook.SecretFile == "" {
		hook.Secret = r.secret("planner.webhook", "secret_env", "secret_file", hook.SecretEnv, &hook.SecretFile, env)
	}
	r.redisSecrets(&c.Store.Redis, env)
}

// redisSecrets also keeps passwords out of the URL, unless that comes from the environment.
func (r *reader) redisSecrets(d *redis.Config, env Env) {
	const key = "store.redis"
	switch _, fromEnv := r.fromEnv[key+".url"]; {
	case fromEnv: // applyEnv has set the URL
	case d.URL != "" && d.URLEnv != "":
		r.report(key+".url_env", "is given beside url: remove one of them")
	case d.URLEnv != "":
		var none string
		d.URL = r.secret(key, "url_env", "url", d.URLEnv, &none, env)
	case d.URL != "":
		if u, err := url.Parse(d.URL); err == nil && u.User != nil {
			if _, ok := u.User.Password(); ok {
				r.report(key+".url", "secrets never stand in this file: take the password out and use password_env or password_file, or url_env for the whole URL")
			}
		}
	}
	if d.PasswordEnv == "" || d.PasswordFile == "" {
		d.Password = r.secret(key, "password_env", "password_file", d.PasswordEnv, &d.PasswordFile, env)
	}
	if d.SentinelPasswordEnv == "" || d.SentinelPasswordFile == "" {
		d.SentinelPassword = r.secret(key, "sentinel_password_env", "sentinel_password_file", d.SentinelPasswordEnv, &d.SentinelPasswordFile, env)
	}
	r.certificates(key, &d.CAFile, &d.ClientCert, &d.ClientKey)
}

var envName = regexp.MustCompile(`^([A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]{0,23})$`)

// secret reads one secret from the environment or a file. With neither or both it
// returns "": the Validate of the setting's package decides whether that is allowed.
func (r *reader) secret(key, envKey, fileKey, name string, file *string, env Env) string {
	r.resolve(file)
	switch {
	case name != "" && *file != "":
		return ""
	case name != "":
		at := joinKey(key, envKey)
		if len(name) > 100 || !envName.MatchString(name) {
			// It may be the secret itself, so the message does not contain it.
			if value, ok := env(name); ok && value != "" {
				return r.checkSecret(at, value)
			}
			if plain := strings.Trim(name, "${}"); name[0] == '$' && envName.MatchString(plain) {
				r.report(at, "must be the name alone, without $: %s", plain)
				return ""
			}
			r.report(at, "must be the name of an environment variable that is set, like OPENAI_API_KEY, not the secret itself")
			return ""
		}
		value, ok := env(name)
		if !ok && r.secretless {
			return absent(at)
		}
		if !ok {
			r.report(at, "the environment variable %s is not set: export it where the gateway starts, or use %s", name, fileKey)
			return ""
		}
		if strings.TrimRight(value, "\r\n") == "" {
			r.report(at, "the environment variable %s is empty: give it the secret", name)
			return ""
		}
		return r.checkSecret(at, value)
	case *file != "":
		at := joinKey(key, fileKey)
		data, err := r.readFile(*file, maxSecret)
		if r.secretless && errors.Is(err, fs.ErrNotExist) {
			return absent(at)
		}
		if err != nil {
			r.report(at, "%s", fileProblem(*file, err))
			return ""
		}
		if strings.TrimRight(string(data), "\r\n") == "" {
			r.report(at, "%s is empty: write the secret into it", quote(*file))
			return ""
		}
		return r.checkSecret(at, string(data))
	}
	return ""
}

// absent returns a placeholder for a secret that is not on this machine. Each is
// different, as secrets must be; for a URL it is a valid URL.
func absent(key string) string {
	if strings.HasSuffix(key, "url_env") {
		return "redis://not-known-here:6379"
	}
	return "not-known-here-" + key
}

// checkSecret reports a secret that cannot be sent in an HTTP header. Secrets of the
// store may have any characters except control characters.
func (r *reader) checkSecret(key, value string) string {
	value = strings.TrimRight(value, "\r\n")
	switch {
	case strings.HasPrefix(key, "store.") && !strings.ContainsFunc(value, unicode.IsControl):
		return value
	case strings.HasPrefix(strings.ToLower(value), "bearer "):
		r.report(key, "the secret begins with \"Bearer \": leave that out, it is added where it belongs")
	case strings.TrimSpace(value) != value:
		r.report(key, "the secret begins or ends with a space: remove it")
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
		r.report(key, "the secret has a line break or another character that no HTTP header may carry: it must be one line of plain text")
	default:
		return value
	}
	return ""
}

func fileProblem(path string, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %s: create it or correct the path (relative paths start in the folder of this configuration)", quotePath(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the file %s may not be read: give the gateway's user the permission", quotePath(path))
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Sprintf("the file %s cannot be used: %s", quotePath(path), err)
}

func quotePath(path string) string {
	if len(path) > 200 {
		path = "…" + path[len(path)-200:]
	}
	return fmt.Sprintf("%q", path)
}

// certificates checks the PEM files of one TLS client, so that mistakes are reported
// with their line instead of at the first connection.
func (r *reader) certificates(key string, ca, cert, certKey *string) {
	r.resolve(ca)
	if *ca != "" && !r.secretless {
		at := joinKey(key, "ca_file")
		if data, err := r.readFile(*ca, maxCertificate); err != nil {
			r.report(at, "%s", fileProblem(*ca, err))
		} else if !x509.NewCertPool().AppendCertsFromPEM(data) {
			r.report(at, "the file %s holds no certificate: it must be PEM, with BEGIN CERTIFICATE", quotePath(*ca))
		}
	}
	r.keyPair(key, "client_cert", "client_key", cert, certKey)
}

// keyPair reads the PEM files of a certificate and its key; nil without them.
func (r *reader) keyPair(key, certName, keyName string, cert, certKey *string) *tls.Certificate {
	r.resolve(cert)
	r.resolve(certKey)
	if r.secretless || *cert == "" || *certKey == "" {
		return nil
	}
	certPEM, err := r.readFile(*cert, maxCertificate)
	if err != nil {
		r.report(joinKey(key, certName), "%s", fileProblem(*cert, err))
	}
	keyPEM, keyErr := r.readFile(*certKey, maxCertificate)
	if keyErr != nil {
		r.report(joinKey(key, keyName), "%s", fileProblem(*certKey, keyErr))
	}
	if err != nil || keyErr != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		r.report(joinKey(key, certName), "certificate and %s cannot be used together: both must be PEM and belong to each other", keyName)
		return nil
	}
	return &pair
}

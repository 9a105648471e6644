// Package configs turns a YAML file and the environment into the one value
// from which the gateway is built, and refuses everything it does not
// understand.
//
//	text -> parse (bounded) -> decode (strict) -> environment -> secrets -> validate -> Config
//
// Every step reports all it finds as a [Problem] with file, line, column, key,
// what is wrong and what to do; together they are one [Errors].
//
// # The file
//
// The embedded default.yaml ([Reference]) is the reference: every key with its
// default and what it does. A file holds only what differs; an empty file, or
// none, is the defaults.
//
//   - Durations need a unit (10s, 1m30s). Sizes are bytes or 64MiB, 10MB.
//     Shares are numbers from 0 to 1. The text of any scalar is taken for a
//     string as it is written.
//   - A list or a map in the file replaces the default one; it is not added to it.
//   - An upstream, a target and a key have their own defaults for what the file
//     leaves out. The upstream named "default" is OpenAI unless it has a url.
//   - A file that declares upstreams declares all of them. The default upstream
//     is the one that default_upstream names, else "default", else the only one.
//   - The default upstream takes the client's own credential unless it has keys
//     or says passthrough: false. No other upstream does unless it says so.
//   - Relative paths are relative to the folder of the file.
//   - Anchors, aliases and merge keys work within limits; tags do not.
//
// # The environment
//
// These win over the file; empty is the same as not set:
//
//	REBOUND_LISTEN       listen
//	OPENAI_UPSTREAM_URL  the url of the default upstream
//	REBOUND_REDIS_URL    store.redis.url, and addresses and what belongs to them are dropped
//	REBOUND_ADMIN_TOKEN  the admin token
//	REBOUND_LOG_LEVEL    log.level
//
// # Secrets
//
// They come from the environment or from files that the configuration names
// (env, file) and never stand in it. They are in no message of this package, in
// no rendering of a [Config] and in no rendering of a problem's source line. A
// secret that somebody did write into the file is recognised by its key, its
// place and the usual forms; one pasted elsewhere may be quoted back.
//
// The package is not responsible for the meaning of the settings: each belongs
// to the package that declares it, with its default and its check. Here is only
// what concerns two of them at once. Nothing in the gateway imports this
// package but the program, which hands the parts on.
package configs

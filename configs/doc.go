// Package configs turns a YAML file and the environment into the [Config] from
// which the gateway is built. It refuses everything it does not understand.
//
//	text -> parse (bounded) -> decode (strict) -> environment -> secrets -> validate -> Config
//
// Every step reports each error as a [Problem] with file, line, column, key, what
// is wrong and what to do; together they are one [Errors].
//
// # The file
//
// The embedded default.yaml ([Reference]) is the reference: every key with its
// default and what it does. A file holds only what differs; an empty file, or
// none, is the defaults.
//
//   - Durations need a unit (10s, 1m30s). Sizes are bytes or 64MiB, 10MB.
//     Shares are numbers from 0 to 1. A string takes the text of any scalar as
//     written.
//   - A list or a map in the file replaces the default one; they are not merged.
//   - Each upstream, target and key has defaults for what the file leaves out. The
//     upstream named "default" is OpenAI unless it has a url.
//   - A file that declares upstreams declares all of them. The default upstream
//     is the one that default_upstream names, else "default", else the only one.
//   - The default upstream of each format gets the client's own credential unless
//     it has keys or passthrough: false. Other upstreams need passthrough: true.
//   - Relative paths are relative to the folder of the file.
//   - Anchors, aliases and merge keys work within limits; tags do not.
//
// # The environment
//
// These override the file; empty is the same as not set:
//
//	REBOUND_LISTEN               listen
//	OPENAI_UPSTREAM_URL          the url of the default upstream
//	ANTHROPIC_UPSTREAM_URL       the url of the default upstream for the Messages API
//	REBOUND_REDIS_URL            store.redis.url; addresses and related keys are dropped
//	REBOUND_ADMIN_TOKEN          the admin token
//	REBOUND_LOG_LEVEL            log.level
//	OTEL_EXPORTER_OTLP_ENDPOINT  otlp.endpoint
//	OTEL_EXPORTER_OTLP_PROTOCOL  otlp.protocol
//
// # Secrets
//
// Secrets come from the environment or from files that the configuration names
// (env, file), never from the configuration itself. Messages, a printed [Config]
// and source lines in reports do not contain them. A secret that is written into
// the file by mistake is recognised by its key, its place and the usual forms; one
// written elsewhere may appear in a report.
//
// The package is not responsible for the meaning of the settings: each belongs to
// the package that declares it, with its default and its check. This package only
// checks what concerns several of them. In the gateway only the program imports it,
// and passes the parts on.
package configs

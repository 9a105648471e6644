// Package redis is the store on a Redis or Valkey server (5 or newer): one
// server, Sentinel or Cluster, over TCP, TLS or a Unix socket. It is the only
// package that knows go-redis.
//
// Every operation is one round trip, on keys of one slot or, where it names
// several, as a pipeline per node; what must be atomic is a script. Every
// operation ends within the configured time-out, including waiting for a
// connection; a new connection may take longer and is then there for the next
// operation.
//
// Keys, all with the prefix (default "rebound:"):
//
//	v:KEY    string  "=" and the value
//	r:KEY    list    a ring, each element "LEN:SLOT" and the value
//	b:BOARD  hash    a board, each value "UNTIL:" and the value; UNTIL in microseconds since 1970
//	l:LOG    list    a log
//	a:{accounts}ACCOUNT
//	         hash    an account: m:METER "WINDOW BEFORE NOW"; h:LEN:METER:HOLDER
//	                 "AMOUNT UNTIL". The braces put all on one server of a Cluster
//	ping     string  what Ping writes
//
// All keys expire. A user needs, on keys with the prefix: GETRANGE, SET,
// UNLINK, HDEL, EVAL, EVALSHA and, from scripts, HGET, PTTL, PEXPIRE,
// LLEN, LRANGE, LSET, RPUSH, LTRIM, HLEN, HGETALL, HSET, DEL; in a Cluster also
// CLUSTER SLOTS and PING.
//
// What others wrote under these keys is not trusted: it is bounded on the
// server before it is sent, skipped when malformed, and a key of a wrong type
// is removed when it is written.
//
// The package is not responsible for going on without the server (store.Shared).
package redis

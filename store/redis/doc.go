// Package redis is the store on a Redis or Valkey server (5 or newer): one
// server, Sentinel or Cluster, over TCP, TLS or a Unix socket. It is the only
// package that knows go-redis.
//
// Every operation is one round trip: on keys of one slot, or as one pipeline per
// node. What must be atomic is a script. Every operation ends within the
// configured time-out, including the wait for a connection; a connection that
// takes longer to open serves the next operation.
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
// UNLINK, HDEL, EVAL, EVALSHA and, in scripts, HGET, PTTL, PEXPIRE,
// LLEN, LRANGE, LSET, RPUSH, LTRIM, HLEN, HGETALL, HSET, DEL; in a Cluster also
// CLUSTER SLOTS and PING.
//
// What others wrote under these keys is not trusted: the server limits its size
// before it sends it, malformed data is skipped, and a write removes a key of
// another type first.
//
// The package is not responsible for working without the server (store.Shared).
package redis

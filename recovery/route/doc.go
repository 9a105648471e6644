// Package route finds the targets that serve a request, in order of preference. It uses the model map, ranks, weights and
// the keys of an upstream, and keeps a conversation at the target that has its prompt cache. It does not know whether a
// target is healthy: that is package breaker.
package route

// Package route finds the targets that serve a request, in order of
// preference: the model map, ranks, weights, several keys of an upstream, and
// the choice that keeps a conversation where its prompt cache is. It does not
// know whether a target is healthy: that is package breaker.
package route

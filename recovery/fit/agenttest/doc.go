// Package agenttest generates sessions of a coding agent, of any size, for when recorded ones are too small.
// It is for tests only, and uses the standard library only. The same seed gives the same bytes.
package agenttest

// Package eventline renders events of a gateway for people, one line each.
// It does not choose which events are shown.
package eventline

// Package eventline formats a gateway's events as lines of text. It does not choose which events
// to show.
package eventline

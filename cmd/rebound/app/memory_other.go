//go:build !linux

package app

// addressLimit is known on Linux only.
func addressLimit() int64 { return 0 }

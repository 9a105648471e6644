//go:build !linux

package app

// addressLimit is only known on Linux.
func addressLimit() int64 { return 0 }

//go:build !linux

package h1

import "time"

// limitUnacked does nothing: the system keeps its own limit.
func limitUnacked(uintptr, time.Duration) {}

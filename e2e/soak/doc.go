// Package soak tests the gateway for a long time: as a program, several times,
// with every store, under steady traffic of many clients, while its upstreams do
// everything wrong that the scripted upstream knows and its stores are killed,
// paused and moved. It counts answers that were lost, crossed or corrupted, and
// watches memory, goroutines and descriptors. At the end it measures a gateway
// that is asked for five times as much as it may answer.
//
//	make soak             # 30 minutes; the report goes to docs/reliability.md
//	go test ./e2e/soak    # the same for some seconds
//
// All of it is a test, because the servers that it needs are those of package
// storetest. It is not responsible for what single faults should lead to: that is
// in e2e and in the tests of the packages.
package soak

// Package store keeps small values with a lifetime, meters, rings, boards and
// bounded logs. It does not interpret them.
//
//	Store    the interface; store/memory implements it in the process, store/redis on a server
//	Shared   a store on a server that no failure of the server fails: values and logs are written
//	         locally, and one goroutine copies them; operations have a time limit, and after a failure
//	         all use the local store until the server answers again
//	Mirror   a local copy of the boards, for reads during requests; changes are written behind
//	Cache    values in the process, with a limit on their total size
//	Vault    values that only callers with a secret can read, in the process and encrypted in a store
//
// A gateway with a server has a Shared of redis and memory, and a Mirror of its boards; one without a server has
// memory and a Mirror of that. Boards are used only through the Mirror, everything else directly. Package storetest
// has the conformance suite for every Store.
//
// The package is not responsible for encodings, for key names, for what is
// worth keeping, or for the configuration file.
package store

// Package conform changes a request so that a target accepts its history, its tool schemas and its content. Each change is
// an edit, named by a recovery.Conform constant.
//
//	pairing.go  gives every call exactly one result, directly after it, and changes call ids
//	turns.go    orders the roles of messages and fills empty messages
//	schema.go   removes schema keywords that a provider does not support
//
// It does not decide which edit a request needs: a strategy chooses it after a refusal, and package learn remembers it for
// the target. An edit does not change parts that are well formed: a healthy history goes out as the client sent it.
package conform

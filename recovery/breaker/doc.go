// Package breaker decides which targets may get requests now (Set), and whether a conversation may continue (Sessions and
// Budgets).
//
// A target gets no requests while its breaker is open (the share of failures in a sliding window was too high) or its key
// is cooling down (the upstream states how long), and no blind resends while too many of them are running. Each replica
// counts its own attempts and posts open breakers and cool-downs on boards that all replicas read.
//
// It makes no requests and chooses no target: the engine calls Check and Begin, and reports outcomes with Done.
package breaker

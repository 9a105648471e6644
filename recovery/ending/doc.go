// Package ending is a context that costs what it is used for. Each request has
// one, made by the server, and each attempt another, made by the engine.
package ending

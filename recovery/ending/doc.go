// Package ending has a context for requests and attempts that allocates only
// what is used of it. The server makes one for each request, and the engine one
// for each attempt.
package ending

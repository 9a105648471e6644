// Package admin serves /rebound/: what an operator looks at and resets. Who may
// see it is the edge's decision; these handlers ask nobody.
package admin

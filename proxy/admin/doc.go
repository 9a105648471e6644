// Package admin serves /rebound/: what an operator looks at and resets, and the page
// in folder page, which only reads what the other routes tell. Who may
// see it is the edge's decision; these handlers ask nobody.
package admin

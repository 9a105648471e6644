// Package admin serves /rebound/: the state that an operator reads and resets, and the page in folder
// page, which only shows what the other routes return. The edge checks access rights; these handlers
// do not.
package admin

// Package recording keeps requests as clients sent them and as they went upstream, for
// the page to show the difference: encrypted, for a while, and only where an operator
// gave a key for it.
//
// It is not responsible for who may read them, nor for showing them, and records no
// answers.
package recording

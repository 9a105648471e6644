// Package recording keeps requests as clients sent them and as they went upstream, so that the page
// can show the difference. Recordings are encrypted and expire, and exist only if an operator has
// configured a key.
//
// It is not responsible for access rights or for showing recordings, and records no answers.
package recording

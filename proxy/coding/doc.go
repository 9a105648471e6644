// Package coding reads bodies that were compressed for the way (RFC 9110,
// section 8.4.1), and bounds what comes out of them: a megabyte can stand for a
// gigabyte.
package coding

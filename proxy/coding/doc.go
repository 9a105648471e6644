// Package coding decompresses bodies with a content coding (RFC 9110, section 8.4.1) and limits the
// size of the result, because a megabyte may expand to a gigabyte.
package coding

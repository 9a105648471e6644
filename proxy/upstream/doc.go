// Package upstream makes one request to one upstream: URL, credential,
// headers, connection. It never retries and never decides; what the response
// means is package stream's and package classify's.
package upstream

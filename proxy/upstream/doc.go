// Package upstream makes one request to one upstream: URL, credential, headers, connection. It never
// retries failures and makes no decisions; packages stream and classify interpret the response.
package upstream

// Package traces sends the demo's traces to a real OpenTelemetry Collector, over gRPC
// and over HTTP, and checks the tree of spans that comes out of it. All of it is a test;
// make collector builds the collector in folder collector and runs it.
package traces

// Package telemetry turns events into what an operator sees: metrics, log
// lines, the event stream and its history, and traces.
//
//	Observe ─┬─ metrics, at once              GET /metrics          Hub.Handler, Hub.Now
//	         ├─ spans, at once, with a collector                    Hub.Export
//	         └─ queue ─ render once ─┬─ a log line
//	                                 ├─ the live stream             Hub.Events, Hub.History
//	                                 └─ the sink (the store's log)  Hub.SetSink, Hub.SetLog
//
// An uneventful request is one request_done event and costs a few counters: it is neither queued nor
// logged unless the configuration or a subscriber asks for it. The queue is bounded; events that do
// not fit are dropped and counted.
//
// The package does not decide what an event is or when it happens. Events contain no prompt or answer
// text, because [recovery.Event] has none. Text of upstreams and clients that they do contain (causes,
// model names) is limited in length and stripped of control characters; causes are also redacted.
package telemetry

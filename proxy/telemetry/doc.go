// Package telemetry turns events into what an operator sees: metrics, log
// lines, the event stream and its history, and traces.
//
//	Observe ─┬─ metrics, at once              GET /metrics          Hub.Handler, Hub.Now
//	         ├─ spans, at once, with a collector                    Hub.Export
//	         └─ queue ─ render once ─┬─ a log line
//	                                 ├─ the live stream             Hub.Events, Hub.History
//	                                 └─ the sink (the store's log)  Hub.SetSink, Hub.SetLog
//
// A healthy request is one request_done event and costs a few counters: it is
// neither queued nor logged unless somebody asked for that. What is queued is
// bounded; events that find the queue full are dropped and counted.
//
// It does not decide what an event is or when it happens, and there is no
// prompt or answer text that it could leak: [recovery.Event] has none. What
// upstreams and clients wrote nevertheless (causes, model names) is bounded,
// stripped of control characters and, for causes, redacted.
package telemetry

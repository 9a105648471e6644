// Package upstreamtest is an OpenAI-compatible mock upstream. The requested model
// name contains a script of the answers, good and bad. Tests run it in process on
// real sockets; cmd/mockllm runs it as a program.
//
//	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
//	// point the gateway at up.URL()+"/v1", ask it for the model
//	// "svc@503x2/cut=0.66/ok", then look at what reached the upstream:
//	recs, err := up.Await(ctx, "svc", 3)
//
// It serves POST /v1/chat/completions (also without /v1, and as
// /openai/deployments/{model}/chat/completions), POST /v1/responses and its
// sub-resources, POST /v1/messages and /v1/messages/count_tokens,
// POST /v1/embeddings and GET /v1/models. Its own endpoints are GET /healthz,
// GET /mock/requests?model= (the latest records), GET /mock/stats,
// POST /mock/reset, and POST /mock/script with
// {"model":"plain-name","steps":"429/ok"}, for clients that cannot put a script
// into the model name.
//
// It is no model: its texts depend only on the model's name (see TextFor), and a
// token is four bytes. It does not check credentials, rate limits or schemas; a
// script makes those fail. It does check the items of a response like OpenAI
// does (see Ledger), with one account per credential.
//
// # Disguises
//
// Options.As makes it imitate a known server (Disguises) for chat completions of models
// without a script: its model list with context windows, its refusals and their wording,
// how it continues a prefill, and whether it silently truncates long prompts. Such a
// model repeats a code word from the prompt when it is asked for it.
//
// # Responses
//
// The same scripts also make responses. The finish reason becomes the status;
// reasoning becomes an item with a summary, and encrypted_content that only the
// same account may send back; a call becomes an item of the first tool, which may
// be custom or in a namespace. With no-finish there is no terminal event. Directives
// without an equivalent (prefill, n, logprobs, and call= except whole,
// merged and object) have no effect. Unless store is false, the account can get,
// cancel, delete, reference and continue the response, and list its input items;
// each request that names a response takes a step of its model's script. With
// background a response is queued, or, if streamed, can be resumed with
// starting_after.
//
// # Messages
//
// The same scripts also make messages of Anthropic's API. The finish reason becomes the
// stop reason, reasoning a thinking block whose signature is bound to the credential, and
// a call a tool_use block. Errors have Anthropic's envelope and types. Directives without
// an equivalent (n, logprobs and call=) have no effect.
//
// # Scripts
//
// Requests for the model NAME@STEP/STEP/... get these steps in order: the k-th
// request with exactly that string (and the same X-Mock-Key header, if any) gets
// step k, and the last step repeats forever. Answers call the model NAME. A name
// without @ gets good answers, unless it was given a script (-script, /mock/script).
//
// A step is a comma-separated list of directives. The suffix xN repeats a step:
// svc@429,retry-after=2x3/ok answers 429 three times, then ok. In values %2C is a
// comma, %2F a slash, and %78 an x, for values that end like a repeat count. In
// msg, body and args a plus sign is a space. A script that does not parse is
// answered with 400 and the code mock_bad_script.
//
// Directives combine: first delay and the faults of the connection, then errors,
// then the answer. Durations are like 20ms or 2s; a bare number means seconds.
// Shares are numbers from 0 to 1.
//
//	ok                 nothing special
//	for=10s            the step lasts until 10 s after the model's first request;
//	                   several steps add up; if the last step has it, ok follows
//	only-key=SECRET    requests with another credential get ok instead, but
//	                   still count as requests
//
// # Errors
//
//	400 ... 599        this status with an error in OpenAI's format
//	code= type= msg=   replace those fields of the error
//	html               an HTML page, 502 without a status
//	body=empty         no body; body=TEXT sends that text (200 without a status)
//	ctx=8192           context_length_exceeded if messages and tools are more than
//	                   8192 tokens, else the rest of the step; without a value always
//	quota              429 insufficient_quota
//	unauthorized       401 invalid_api_key
//	gone               404 model_not_found
//	overloaded         529 in Anthropic's format
//	content-filter     400 content_filter with Azure's message
//	no-param=NAME      400 unsupported_parameter with OpenAI's message if the request
//	                   has this field (temperature, top_p: with a value other than 1)
//	max-out=4096       400 if max_tokens or max_completion_tokens is larger
//	retry-after=2      the header; also retry-after-ms=
//	header=Name:Value  any header, on any answer
//
// # Connection and time
//
//	reset              RST before any byte
//	close              FIN before any byte
//	hang               never answers; records when the client leaves
//	headers-hang       200 and headers, then silence
//	half-json          200 with the first half of the JSON and a matching
//	                   Content-Length; a stream ends in the middle of an event
//	short              a Content-Length larger than the body
//	over               a Content-Length of half the body; the connection stays open
//	twice              the answer, and at once the same answer again, unrequested;
//	                   the connection stays open
//	gzip               a good answer is compressed, each event of a stream separately
//	delay=20s          wait before the headers
//	first=20s          headers (and role) at once, the first content this much later
//	pings=1s           comment lines while a stream waits
//	gap=20ms           wait between content chunks
//	chunks=50          number of content chunks
//	bytes=4000         size of the text
//
// # Streams
//
// Shares count the chunks with reasoning, text or tool calls, not the role chunk
// before them. "Not streamed:" says what happens to an answer without streaming.
//
//	cut=0.66           the connection breaks there; not streamed: inside the body
//	fin=0.66           a clean end there, without finish_reason and [DONE]; not
//	                   streamed: JSON that stops there
//	stall=0.5:30s      a pause there; stall=0.5 pauses forever
//	error-event=0.5    an error event there, with code, type and msg if given, then
//	                   the end; without a value before all content; not streamed:
//	                   the error as the body of a 200
//	flat               for responses: the error event has the type error instead of
//	                   response.failed; not streamed: an error body instead of a
//	                   failed response
//	malformed=0.3      a chunk with truncated JSON there; not streamed: the body is
//	                   not JSON
//	noise=0.3          an event there that is not JSON at all; for messages, this
//	                   and malformed have the event name of a text delta
//	no-done            without [DONE]
//	done               for responses: with [DONE], which they normally lack
//	no-finish          without finish_reason
//	unkept             for responses: not stored
//	role-only          the role chunk and [DONE]; not streamed: choices is empty
//	empty              only [DONE]; not streamed: no body
//	empty-answer       finish_reason without content
//	crlf               lines end in CR LF
//	split=1            pieces of that many bytes, each in its own write
//	one-write          everything in one write
//	usage-always       the usage chunk even if the request does not ask for it
//	cached=0.6         in chat, the usage reports this share of the prompt as cached
//
// # Content
//
//	text=A             another text, different from the first character on
//	tool, tool=NAME    a tool call in fragments: the request's first tool or
//	                   get_weather, with {"city":"Paris"}
//	args=JSON          other arguments for it, valid or not
//	text-tool          the text, then the call
//	call=FORM          how the call is sent: whole (in one chunk), merged (two
//	                   calls, in a stream both with index 0), no-index, names (the
//	                   name in each chunk), object (arguments as an object, not a
//	                   string), message (in a message next to the finish reason, not
//	                   in a delta). Not streamed: only merged and object matter
//	leak               the call is in the text, as <tool_call>{…}</tool_call>
//	leak=TEXT          the answer is that text, in as many chunks as chunks= says
//	rejected           400 tool_use_failed with the leaked call as failed_generation
//	reason=2           reasoning_content first, over 2 s; reason without delay
//	logprobs           log probabilities (also if the request asks for them)
//	n, n=3             this many choices (default: the request's n); n alone means 2
//	finish=length      another finish_reason
//	prefill=ok         a last assistant message is continued: with the rest of the
//	                   text if it is the text's beginning, else with another
//	                   thought (the default)
//	prefill=overlap    as ok, but the last four words of the prefill come again first
//	prefill=echo       as ok, but the first piece repeats the prefill, as llama.cpp does
//	prefill=ignore     the text from its beginning
//	prefill=refuse     400 with Anthropic's message
//
// # Hostile
//
//	endless-headers    endless header lines
//	endless-line       an endless data line (or JSON string)
//	bomb               gzip: about 1 MB that expands to 1 GB
//	big=10000000       a text of that size
//	bad-chunk          chunked encoding with a length that is no number
//	status-junk        bytes that are not HTTP
package upstreamtest

// Package upstreamtest is an OpenAI-compatible upstream whose answers, good and
// bad, are scripted by the name of the model. Tests run it in process on real
// sockets; cmd/mockllm is the same as a program.
//
//	up := upstreamtest.New(upstreamtest.Options{}).Start(t)
//	// point the gateway at up.URL()+"/v1", ask it for the model
//	// "svc@503x2/cut=0.66/ok", then look at what reached the upstream:
//	recs, err := up.Await(ctx, "svc", 3)
//
// It serves POST /v1/chat/completions (also without /v1, and as
// /openai/deployments/{model}/chat/completions), POST /v1/responses with all that
// belongs to it, POST /v1/messages and /v1/messages/count_tokens, POST /v1/embeddings and GET /v1/models. Its own endpoints are GET /healthz, GET /mock/requests?model=
// (the latest records), GET /mock/stats, POST /mock/reset, and POST /mock/script
// with {"model":"plain-name","steps":"429/ok"} for names that a client cannot
// send.
//
// It is not responsible for being a model: its texts depend on nothing but the
// model's name (see TextFor), its token counts are bytes divided by four. It
// does not check credentials, rate limits or schemas; a script says when those
// fail. The items of a response it does check, as its real counterpart (Ledger): a
// credential is an account.
//
// # Disguises
//
// Options.As makes it resemble a known server (Disguises) in chat completions of models
// without a script: how it lists models and tells their window, what it refuses and in
// which words, how it continues a given beginning, whether it cuts long prompts silently.
// A disguised model repeats a code word that it has read, if it is asked for it.
//
// # Responses
//
// The same scripts make responses: the finish reason becomes the status, reasoning
// an item with a summary, its encrypted_content bound to the account that asked for
// it, a call the item of the first tool, which may be custom or in a namespace. An
// answer that no-finish leaves open has no terminal event. What knows no equivalent
// (prefill, n, logprobs, null-content, and call= but for whole, merged and object)
// changes nothing. A response that store does not forbid can be got, listed,
// cancelled, deleted, referred to and continued, by its account; such a request
// takes a step of the script of the response's model. One with background is queued,
// or, streamed, can be taken up again with starting_after.
//
// # Messages
//
// The same scripts make messages of Anthropic's API: the finish reason becomes the stop
// reason, reasoning a thinking block whose signature is bound to the credential, a call a
// tool_use block. Errors have Anthropic's envelope and types. What knows no equivalent (n,
// logprobs, null-content and call=) changes nothing.
//
// # Scripts
//
// A model named NAME@STEP/STEP/... is answered by these steps: the k-th request
// with that very string (and the same X-Mock-Key header, if any) gets step k,
// the last step repeats for ever. Answers name the model NAME. A name without @
// is well, unless Script or /mock/script gave it a script.
//
// A step is a list of directives with commas between them. The suffix xN on a
// step repeats it: svc@429,retry-after=2x3/ok is three times 429, then well. In
// values %2C is a comma, %2F a slash and %78 an x, where a value would end like a
// repeat count. In msg, body and args a plus sign is a space. A script that does
// not parse is answered with 400 and the code mock_bad_script.
//
// Directives combine. First come delay and the faults of the connection, then
// errors, then the answer. Durations are like 20ms or 2s; a bare number means
// seconds. Shares are within 0 and 1.
//
//	ok                 nothing special
//	for=10s            the step lasts until 10 s after the first request of the
//	                   model; several add up; after a last one comes ok
//	only-key=SECRET    requests with another credential get ok instead; they
//	                   count as requests all the same
//
// # Errors
//
//	400 ... 599        this status with an error in OpenAI's shape
//	code= type= msg=   replace those fields of the error
//	html               an HTML page, 502 without a status
//	body=empty         no body; body=TEXT is sent as it is (200 without a status)
//	ctx=8192           context_length_exceeded if messages and tools are more than
//	                   8192 tokens, else the rest of the step; ctx is always
//	quota              429 insufficient_quota
//	unauthorized       401 invalid_api_key
//	gone               404 model_not_found
//	overloaded         529 in Anthropic's shape
//	content-filter     400 content_filter in Azure's words
//	no-param=NAME      400 unsupported_parameter, in OpenAI's words, if the request
//	                   has this field (temperature, top_p: other than 1)
//	max-out=4096       400 if max_tokens or max_completion_tokens is larger
//	retry-after=2      the header; also retry-after-ms=
//	header=Name:Value  any header, on any answer
//
// # Connection and time
//
//	reset              RST before any byte
//	close              FIN before any byte
//	hang               never answers; notices the peer leaving
//	headers-hang       200 and headers, then silence
//	half-json          200 of the right length with JSON that stops in the middle; in
//	                   a stream the event in its middle, then the end
//	short              a Content-Length that is larger than what comes
//	over               one that is half of what comes; the connection stays open
//	twice              the answer, and at once the same answer again, which nobody
//	                   asked for; the connection stays open
//	gzip               a good answer is compressed, each event of a stream by itself
//	delay=20s          before the headers
//	first=20s          headers (and role) at once, the first content this much later
//	pings=1s           comment lines while a stream waits
//	gap=20ms           between content chunks
//	chunks=50          number of content chunks
//	bytes=4000         size of the text
//
// # Streams
//
// Shares count the chunks that carry the answer: reasoning, text and tool call,
// not the role before them. An answer that is not streamed gets what is nearest.
//
//	cut=0.66           the connection breaks there; else: inside the body
//	fin=0.66           a clean end there, without finish_reason and [DONE]; else: JSON
//	                   that stops there
//	stall=0.5:30s      a pause there; stall=0.5 for ever
//	error-event=0.5    an error event there, then the end, with code, type and msg if
//	                   given; without a value before all content; else: the error
//	                   as the body of a 200
//	flat               for responses: the error event is of the type error, else
//	                   response.failed; else: the error's body, not a failed response
//	malformed=0.3      a chunk there that is cut in its JSON; else: the body is not JSON
//	noise=0.3          an event there that is neither JSON nor any part of a chunk;
//	                   in messages both have the name of an event with text
//	no-done            without [DONE]
//	done               for responses: with [DONE], which otherwise they do not have
//	no-finish          without finish_reason
//	unkept             for responses: nothing is stored of it
//	role-only          the role chunk and [DONE]; else: choices is empty
//	empty              only [DONE]; else: no body
//	empty-answer       finish_reason without content
//	null-content       the role chunk says content: null
//	crlf               lines end in CR LF
//	split=1            pieces of that many bytes, each sent by itself
//	one-write          everything at once
//	usage-always       the usage chunk also if nobody asked for it
//	cached=0.6         in chat, this share of the prompt was cached, says the usage
//
// # Content
//
//	text=A             another text; see TextOf
//	tool, tool=NAME    a tool call in fragments: the request's first tool or
//	                   get_weather, with ToolArguments
//	args=JSON          other arguments for it, valid or not
//	text-tool          the text, then the call
//	call=FORM          how the call is sent: whole (in one chunk), merged (two
//	                   calls, in a stream both with index 0), no-index, names (the
//	                   name on each chunk), object (arguments that are no string),
//	                   message (not in the delta, but with the finish reason).
//	                   An answer that is not streamed knows merged and object
//	leak               the call stands in the text, see LeakedCall
//	leak=TEXT          the answer is that text, in so many chunks as chunks says
//	rejected           400 tool_use_failed with the leaked call as failed_generation
//	reason=2           reasoning_content first, over 2 s; reason without delay
//	logprobs           log probabilities (also if the request asks for them)
//	n, n=3             so many choices (else as many as the request's n); n is 2
//	finish=length      another finish_reason
//	prefill=ok         a last assistant message is continued: by the rest of the
//	                   text that it begins, else by PrefillElsewhere (the default)
//	prefill=overlap    the same after its last four words again
//	prefill=echo       the first piece begins with what was given, as llama.cpp's does
//	prefill=ignore     from the beginning
//	prefill=refuse     400 in Anthropic's words
//
// # Hostile
//
//	endless-headers    header lines that never end
//	endless-line       a data line (or a JSON string) that never ends
//	bomb               gzip: about 1 MB that expands to 1 GB
//	big=10000000       a text of that size
//	bad-chunk          chunked encoding with a length that is no number
//	status-junk        no HTTP at all
//
// # Load
//
// A name without a script may carry its tuning: m-lat50-n100-d20-b4000 answers
// after 50 ms, in 100 chunks that are 20 ms apart, with 4000 bytes. With -ts each
// content chunk of a stream begins with the time it was sent, ~unix nanoseconds~.
package upstreamtest

// Drives responses of openai for Node with its default settings: create, or, with
// the argument stream, its helper .stream(), which checks what it reads.
import OpenAI from 'openai-7';
import { counted, serve, settings } from './driver.mjs';

const helper = process.argv[2] === 'stream';

async function run(call) {
  const { spec, answer: out, signal } = call;
  const client = new OpenAI({ baseURL: spec.base_url, apiKey: spec.api_key, fetch: counted(call) });
  const options = { signal };
  if (spec.timeout_ms) options.timeout = spec.timeout_ms;
  const params = { model: spec.model, input: spec.messages, ...settings(spec, ['temperature', 'store', 'include']) };
  if (spec.max_tokens) params.max_output_tokens = spec.max_tokens;
  if (spec.tools?.length) params.tools = spec.tools.map((t) => ({ type: 'function', strict: false, ...t }));
  if (!spec.stream) return finish(out, await client.responses.create(params, options));
  const stream = helper ? client.responses.stream(params, options) : await client.responses.create({ ...params, stream: true }, options);
  for await (const event of stream) {
    switch (event.type) {
      case 'response.output_text.delta':
        out.text += event.delta;
      // falls through
      case 'response.function_call_arguments.delta':
        call.token();
        break;
      case 'response.output_item.done':
        if (event.item.type === 'function_call') out.tool_calls.push(called(event.item));
        break;
      case 'response.failed':
        throw Object.assign(new Error(event.response.error?.message ?? 'the response failed'), { code: event.response.error?.code });
      case 'response.completed':
      case 'response.incomplete':
        ended(out, event.response);
    }
  }
  if (helper) finish(out, await stream.finalResponse());
}

const called = (item) => ({ id: item.call_id, name: item.name, arguments: item.arguments });

function ended(out, res) {
  const calls = res.output.filter((item) => item.type === 'function_call');
  const u = res.usage;
  out.model = res.model;
  out.finish_reason = { completed: calls.length ? 'tool_calls' : 'stop', incomplete: 'length' }[res.status] ?? '';
  if (u) out.usage = { prompt_tokens: u.input_tokens, completion_tokens: u.output_tokens, total_tokens: u.total_tokens };
}

function finish(out, res) {
  ended(out, res);
  if (res.status === 'failed') throw Object.assign(new Error(res.error.message), { code: res.error.code });
  const parts = res.output.filter((item) => item.type === 'message').flatMap((item) => item.content);
  out.text = parts.map((part) => part.text ?? '').join('');
  out.tool_calls = res.output.filter((item) => item.type === 'function_call').map(called);
}

serve(run, (error) => ({
  error: String(error?.message ?? error),
  error_type: error?.constructor?.name ?? 'Error',
  status: error?.status ?? 0,
  code: String(error?.code ?? ''),
}));

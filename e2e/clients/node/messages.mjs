// Drives the Anthropic SDK for Node with its default settings: create, or, with the
// argument stream, its helper .stream(), which puts the message together.
import Anthropic from '@anthropic-ai/sdk';
import { counted, serve, settings } from './driver.mjs';

const helper = process.argv[2] === 'stream';

async function run(call) {
  const { spec, answer: out, signal } = call;
  // The library adds /v1 itself.
  const client = new Anthropic({ baseURL: spec.base_url.replace(/\/v1$/, ''), apiKey: spec.api_key, fetch: counted(call) });
  const options = { signal };
  if (spec.timeout_ms) options.timeout = spec.timeout_ms;
  const params = { model: spec.model, max_tokens: 1024, messages: spec.messages.filter((m) => m.role !== 'system'), ...settings(spec, ['max_tokens', 'temperature']) };
  const system = spec.messages.filter((m) => m.role === 'system').map((m) => m.content).join('\n');
  if (system) params.system = system;
  if (spec.tools?.length) params.tools = spec.tools.map(({ parameters, ...t }) => ({ ...t, input_schema: parameters }));
  if (!spec.stream) return finish(out, await client.messages.create(params, options));
  const stream = helper ? client.messages.stream(params, options) : await client.messages.create({ ...params, stream: true }, options);
  const blocks = [];
  for await (const event of stream) {
    switch (event.type) {
      case 'message_start':
        call.usage = event.message.usage;
        ended(out, event.message);
        break;
      case 'content_block_start':
        blocks.push({ ...event.content_block, json: '' }); // as the SDK does, whatever the index
        break;
      case 'content_block_delta': {
        const block = blocks[event.index];
        if (event.delta.type === 'text_delta') out.text += event.delta.text;
        if (event.delta.type === 'input_json_delta') block.json += event.delta.partial_json;
        if (event.delta.text || event.delta.partial_json) call.token();
        break;
      }
      case 'content_block_stop': {
        const block = blocks[event.index];
        if (block.type === 'tool_use') out.tool_calls.push(called({ ...block, input: JSON.parse(block.json || '{}') }));
        break;
      }
      case 'message_delta':
        ended(out, { model: out.model, stop_reason: event.delta.stop_reason, usage: { ...call.usage, ...event.usage } });
    }
  }
  if (helper) finish(out, await stream.finalMessage());
}

const called = (block) => ({ id: block.id, name: block.name, arguments: JSON.stringify(block.input) });

function ended(out, message) {
  const u = message.usage;
  out.model = message.model;
  out.finish_reason = { end_turn: 'stop', tool_use: 'tool_calls', max_tokens: 'length' }[message.stop_reason] ?? message.stop_reason ?? '';
  if (u) out.usage = { prompt_tokens: u.input_tokens, completion_tokens: u.output_tokens, total_tokens: u.input_tokens + u.output_tokens };
}

function finish(out, message) {
  ended(out, message);
  out.text = message.content.map((block) => block.text ?? '').join('');
  out.tool_calls = message.content.filter((block) => block.type === 'tool_use').map(called);
}

serve(run, (error) => ({
  error: String(error?.message ?? error),
  error_type: error?.constructor?.name ?? 'Error',
  status: error?.status ?? 0,
  code: String(error?.error?.error?.code ?? error?.error?.error?.type ?? ''),
}));

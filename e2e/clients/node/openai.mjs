// Drives openai for Node with its default settings.
import OpenAI from 'openai';
import { counted, serve, settings } from './driver.mjs';

async function run(call) {
  const { spec, answer: out, signal } = call;
  const client = new OpenAI({ baseURL: spec.base_url, apiKey: spec.api_key, fetch: counted(call) });
  const options = { signal };
  if (spec.timeout_ms) options.timeout = spec.timeout_ms;
  const params = { model: spec.model, messages: spec.messages, ...settings(spec) };
  if (spec.tools?.length) params.tools = spec.tools.map((t) => ({ type: 'function', function: t }));
  if (!spec.stream) {
    const res = await client.chat.completions.create(params, options);
    const choice = res.choices[0];
    Object.assign(out, { model: res.model, usage: res.usage, text: choice.message.content ?? '', finish_reason: choice.finish_reason ?? '' });
    out.tool_calls = (choice.message.tool_calls ?? []).map((t) => ({ id: t.id, ...t.function }));
    return;
  }
  if (spec.include_usage) params.stream_options = { include_usage: true };
  const stream = await client.chat.completions.create({ ...params, stream: true }, options);
  for await (const chunk of stream) {
    out.model = chunk.model;
    out.usage = chunk.usage ?? out.usage;
    for (const { delta, finish_reason } of chunk.choices) {
      if (delta.content || delta.tool_calls?.length) call.token();
      out.text += delta.content ?? '';
      out.finish_reason = finish_reason ?? out.finish_reason;
      for (const t of delta.tool_calls ?? []) {
        const to = (out.tool_calls[t.index] ??= { id: '', name: '', arguments: '' });
        to.id += t.id ?? '';
        to.name += t.function?.name ?? '';
        to.arguments += t.function?.arguments ?? '';
      }
    }
  }
}

serve(run, (error) => ({
  error: String(error?.message ?? error),
  error_type: error?.constructor?.name ?? 'Error',
  status: error?.status ?? 0,
  code: String(error?.code ?? ''),
}));

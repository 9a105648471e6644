// A plain agent loop over openai for Node, as people write it.
import OpenAI from 'openai';
import { SYSTEM, described, execute, serve } from './agent.mjs';

const tools = described.map(([name, description, parameters]) => ({ type: 'function', function: { name, description, parameters } }));

async function ask(client, spec, messages, signal) {
  const params = { model: spec.model, messages, tools };
  if (!spec.stream) return (await client.chat.completions.create(params, { signal })).choices[0].message;
  const message = { role: 'assistant', content: '' };
  const calls = [];
  for await (const chunk of await client.chat.completions.create({ ...params, stream: true }, { signal })) {
    for (const { delta } of chunk.choices) {
      message.content += delta.content ?? '';
      for (const t of delta.tool_calls ?? []) {
        const call = (calls[t.index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
        call.id += t.id ?? '';
        call.function.name += t.function?.name ?? '';
        call.function.arguments += t.function?.arguments ?? '';
      }
    }
  }
  return calls.length ? { ...message, tool_calls: calls } : message;
}

serve(async (spec, work, out, signal) => {
  const client = new OpenAI({ baseURL: spec.base_url, apiKey: spec.api_key });
  const messages = [{ role: 'system', content: SYSTEM }];
  for (const prompt of spec.prompts) {
    messages.push({ role: 'user', content: prompt });
    let message;
    for (let step = 0; ; step++) {
      if (step === spec.max_steps) throw new Error('too many steps');
      message = await ask(client, spec, messages, signal);
      messages.push(message);
      out.history = JSON.stringify(messages);
      if (!message.tool_calls?.length) break;
      for (const call of message.tool_calls) {
        messages.push({ role: 'tool', tool_call_id: call.id, content: await execute(work, call.function) });
      }
    }
    out.texts.push(message.content ?? '');
  }
});

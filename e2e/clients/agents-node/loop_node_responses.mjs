// A plain agent loop over responses of openai for Node, whose helper .stream()
// checks what it reads.
import OpenAI from 'openai-7';
import { SYSTEM, described, execute, serve } from './agent.mjs';

const tools = described.map(([name, description, parameters]) => ({ type: 'function', strict: false, name, description, parameters }));

async function ask(client, spec, input, signal) {
  const params = { model: spec.model, instructions: SYSTEM, input, tools, store: false, include: ['reasoning.encrypted_content'] };
  const res = spec.stream
    ? await client.responses.stream(params, { signal }).finalResponse()
    : await client.responses.create(params, { signal });
  if (res.status === 'failed') throw new Error(res.error?.message);
  return res.output;
}

serve(async (spec, work, out, signal) => {
  const client = new OpenAI({ baseURL: spec.base_url, apiKey: spec.api_key });
  const items = [];
  for (const prompt of spec.prompts) {
    items.push({ role: 'user', content: prompt });
    let output;
    for (let step = 0; ; step++) {
      if (step === spec.max_steps) throw new Error('too many steps');
      output = await ask(client, spec, items, signal);
      // The helper adds what it parsed, which is not for the wire.
      items.push(...output.map(({ parsed_arguments, ...item }) => item));
      out.history = JSON.stringify(items);
      const calls = output.filter((item) => item.type === 'function_call');
      if (!calls.length) break;
      for (const call of calls) {
        items.push({ type: 'function_call_output', call_id: call.call_id, output: await execute(work, call) });
      }
    }
    out.texts.push(output.filter((item) => item.type === 'message').flatMap((item) => item.content).map((part) => part.text ?? '').join(''));
  }
});

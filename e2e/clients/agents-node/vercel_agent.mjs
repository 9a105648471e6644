// The Vercel AI SDK: generateText and streamText with tools, which loop by themselves.
// With the argument responses it uses @ai-sdk/openai, which speaks that by default, with
// anthropic @ai-sdk/anthropic.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { SYSTEM, described, serve } from './agent.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

serve(async (spec, work, out, signal) => {
  const where = { baseURL: spec.base_url, apiKey: spec.api_key };
  const providers = {
    responses: () => createOpenAI(where),
    anthropic: () => createAnthropic(where),
    undefined: () => createOpenAICompatible({ name: 'upstream', includeUsage: true, ...where }),
  };
  const provider = providers[process.argv[2]]();
  const tools = Object.fromEntries(
    described.map(([name, description, parameters]) => [name, tool({ description, inputSchema: jsonSchema(parameters), execute: work[name] })]),
  );
  let messages = [];
  for (const prompt of spec.prompts) {
    messages.push({ role: 'user', content: prompt });
    const params = { model: provider(spec.model), system: SYSTEM, messages, tools, stopWhen: stepCountIs(spec.max_steps), abortSignal: signal };
    let result;
    if (spec.stream) {
      const failed = [];
      result = streamText({ ...params, onError: () => {} });
      for await (const part of result.fullStream) if (part.type === 'error') failed.push(part.error);
      if (failed.length) throw failed[0];
    } else {
      result = await generateText(params);
    }
    messages = [...messages, ...(await result.response).messages];
    out.history = JSON.stringify(messages);
    out.texts.push(await result.text);
  }
});

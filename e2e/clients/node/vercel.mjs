// Drives the Vercel AI SDK with default settings: with @ai-sdk/openai-compatible,
// or, with the argument responses, @ai-sdk/openai, which speaks that by default, or,
// with the argument anthropic, @ai-sdk/anthropic.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, RetryError, generateText, jsonSchema, streamText, tool } from 'ai';
import { counted, serve, settings } from './driver.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const responses = process.argv[2] === 'responses';
const anthropic = process.argv[2] === 'anthropic';

function options(call) {
  const { spec, signal } = call;
  const where = { baseURL: spec.base_url, apiKey: spec.api_key, fetch: counted(call) };
  const provider = responses
    ? createOpenAI(where)
    : anthropic
    ? createAnthropic(where)
    : createOpenAICompatible({ name: 'upstream', includeUsage: spec.include_usage ?? false, ...where });
  // The SDK wants the system prompt by itself.
  const system = spec.messages.filter((m) => m.role === 'system').map((m) => m.content).join('\n');
  const params = { model: provider(spec.model), messages: spec.messages.filter((m) => m.role !== 'system'), abortSignal: signal };
  if (system) params.system = system;
  if (spec.max_tokens != null) params.maxOutputTokens = spec.max_tokens;
  if (spec.temperature != null) params.temperature = spec.temperature;
  const rest = settings(spec, ['max_completion_tokens']);
  if (Object.keys(rest).length) params.providerOptions = { upstream: rest };
  if (responses && spec.store != null) params.providerOptions = { openai: { store: spec.store } };
  if (spec.tools?.length) {
    params.tools = Object.fromEntries(
      spec.tools.map((t) => [t.name, tool({ description: t.description, inputSchema: jsonSchema(t.parameters) })]),
    );
  }
  return params;
}

const usage = (u) => ({ prompt_tokens: u?.inputTokens ?? 0, completion_tokens: u?.outputTokens ?? 0, total_tokens: u?.totalTokens ?? 0 });
const toolCall = (t) => ({ id: t.toolCallId, name: t.toolName, arguments: JSON.stringify(t.input) });
// The SDK spells it tool-calls, OpenAI tool_calls.
const reason = (r) => (r ?? '').replaceAll('-', '_');

async function run(call) {
  const { answer: out } = call;
  if (!call.spec.stream) {
    const res = await generateText(options(call));
    Object.assign(out, { text: res.text, finish_reason: reason(res.finishReason), model: res.response.modelId, usage: usage(res.usage) });
    out.tool_calls = res.toolCalls.map(toolCall);
    return;
  }
  const failed = [];
  const res = streamText({ ...options(call), onError: () => {} });
  for await (const part of res.fullStream) {
    if (part.type === 'text-delta') {
      call.token();
      out.text += part.text;
    } else if (part.type === 'tool-input-delta') {
      call.token();
    } else if (part.type === 'tool-call') {
      out.tool_calls.push(toolCall(part));
    } else if (part.type === 'finish-step') {
      Object.assign(out, { model: part.response.modelId, finish_reason: reason(part.finishReason), usage: usage(part.usage) });
    } else if (part.type === 'error') {
      failed.push(part.error);
    }
  }
  if (failed.length) throw failed[0];
}

serve(run, (error) => {
  const last = RetryError.isInstance(error) ? error.lastError : error;
  const api = APICallError.isInstance(last) ? last : {};
  let code = '';
  try {
    const { code: own, type } = JSON.parse(api.responseBody).error;
    code = own ?? (anthropic ? type : '');
  } catch {
    // no body, or no envelope
  }
  const cause = error?.cause ? ` (${error.cause}, ${error.cause.cause ?? ''})` : '';
  return {
    error: (typeof error === 'string' ? error : String(error?.message ?? JSON.stringify(error))) + cause,
    error_type: error?.name ?? typeof error,
    status: api.statusCode ?? 0,
    code: String(code),
  };
});

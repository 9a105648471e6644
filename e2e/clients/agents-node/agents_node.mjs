// @openai/agents with its defaults: it speaks /v1/responses.
import { Agent, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai-7';
import { SYSTEM, described, serve } from './agent.mjs';

setTracingDisabled(true);

serve(async (spec, work, out, signal) => {
  const client = new OpenAI({ baseURL: spec.base_url, apiKey: spec.api_key });
  const tools = described.map(([name, description, parameters]) =>
    // By default the framework hides what went wrong from the model, as for get_forecast here.
    tool({ name, description, parameters, execute: work[name], ...(name === 'read_file' && { errorFunction: (_, error) => `Error: ${error.message}` }) }),
  );
  const agent = new Agent({ name: 'assistant', instructions: SYSTEM, model: new OpenAIResponsesModel(client, spec.model), tools });
  const runner = new Runner({ tracingDisabled: true });
  let history = [];
  for (const prompt of spec.prompts) {
    const result = await runner.run(agent, [...history, { role: 'user', content: prompt }], { stream: spec.stream, maxTurns: spec.max_steps, signal });
    if (spec.stream) await result.completed;
    if (result.error) throw result.error;
    out.texts.push(result.finalOutput ?? '');
    history = result.history;
    out.history = JSON.stringify(history);
  }
});

// What the Node drivers share: JSON lines in, JSON lines out, any number at a
// time. The protocol is described in ../../driver.go.
import { createInterface } from 'node:readline';

/** The request's own parameters, as far as the harness gives them. */
export function settings(spec, names = ['max_tokens', 'max_completion_tokens', 'temperature']) {
  return Object.fromEntries(names.filter((n) => spec[n] != null).map((n) => [n, spec[n]]));
}

/** Counts HTTP requests on their way to the platform's own fetch. */
export function counted(call) {
  return async (url, init) => {
    const sent = { at_ms: call.since(), status: 0 };
    call.answer.sent.push(sent);
    const res = await globalThis.fetch(url, init);
    sent.status = res.status;
    return res;
  };
}

async function answer(spec, run, describe) {
  const begun = performance.now();
  const out = { id: spec.id, ok: true, text: '', tool_calls: [], finish_reason: '', model: '', first_token_ms: -1, chunks: 0, sent: [] };
  out.begun_ms = Date.now();
  const control = new AbortController();
  const call = {
    spec,
    answer: out,
    signal: control.signal,
    since: () => Math.round(performance.now() - begun),
    token() {
      out.chunks++;
      if (out.first_token_ms < 0) out.first_token_ms = call.since();
    },
  };
  const stop = (ended) => () => {
    out.ended = ended;
    control.abort();
  };
  const timers = [];
  if (spec.cancel_after_ms) timers.push(setTimeout(stop('cancelled'), spec.cancel_after_ms));
  if (spec.give_up_ms) timers.push(setTimeout(stop('gave_up'), spec.give_up_ms));
  try {
    await run(call);
    if (out.ended) throw new Error('broken off');
  } catch (error) {
    out.ok = false;
    Object.assign(out, describe(error));
  }
  timers.forEach(clearTimeout);
  out.elapsed_ms = call.since();
  process.stdout.write(JSON.stringify(out) + '\n');
}

export function serve(run, describe) {
  // The libraries report what goes wrong in the background, too; the answer has it already.
  process.on('unhandledRejection', (error) => process.stderr.write(`unhandled: ${error}\n`));
  createInterface({ input: process.stdin }).on('line', (line) => answer(JSON.parse(line), run, describe));
}

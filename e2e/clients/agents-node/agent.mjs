// What the Node agents share: tasks in, outcomes out, as lines of JSON, any
// number at a time. The protocol is described in ../../agents/task.go. The tools
// are real: they read and run what is in the task's own folder.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const SYSTEM = 'You are a careful assistant. Work in the current folder with the tools you have.';

/** The tools of one task; what was executed is noted. */
export function workspace(spec, executed) {
  const ran = (name, input) => executed.push({ name, arguments: JSON.stringify(input) });
  return {
    async read_file({ path }) {
      ran('read_file', { path });
      return await readFile(resolve(spec.dir, path), 'utf8');
    },
    run_command({ command }) {
      ran('run_command', { command });
      const env = { PATH: spec.path, LC_ALL: 'C.UTF-8' };
      return new Promise((done) => {
        execFile('/bin/sh', ['-c', command], { cwd: spec.dir, env, timeout: 20000, maxBuffer: 8 << 20 }, (error, out, err) => {
          done(error ? `${out}${err}\nexit code: ${error.code}` : out + err);
        });
      });
    },
    async get_forecast({ city, days }) {
      ran('get_forecast', { city, days });
      if (city !== 'Oslo') throw new Error(`there is no station in ${city}`);
      const n = JSON.stringify(days);
      return `Forecast for ${city}: rain on ${n} days. Reference RAIN-${city}-${n}`;
    },
  };
}

const text = { type: 'string' };
const schema = (properties) => ({ type: 'object', properties, required: Object.keys(properties), additionalProperties: false });

/** Name, description and parameters of each tool. */
export const described = [
  ['read_file', 'Read a text file.', schema({ path: text })],
  ['run_command', 'Run a shell command and return what it prints.', schema({ command: text })],
  ['get_forecast', 'The weather forecast of a city.', schema({ city: text, days: { type: 'integer' } })],
];

/** Runs a call as a plain loop does: what a tool throws is an answer, what is no call ends the run. */
export async function execute(work, { name, arguments: raw }) {
  const input = JSON.parse(raw);
  if (!work[name]) throw new Error(`no tool is called ${name}`);
  try {
    return await work[name](input);
  } catch (error) {
    return `Error: ${error.message}`;
  }
}

async function answer(spec, run) {
  const begun = performance.now();
  const out = { id: spec.id, ok: true, texts: [], history: '', executed: [] };
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(new Error('it took too long')), spec.give_up_ms);
  try {
    await run(spec, workspace(spec, out.executed), out, control.signal);
  } catch (error) {
    out.ok = false;
    out.error = String(error?.message ?? error);
    out.error_type = error?.name ?? typeof error;
    if (error?.constructor?.name && error.constructor.name !== 'Error') out.error_type = error.constructor.name;
  }
  clearTimeout(timer);
  out.elapsed_ms = Math.round(performance.now() - begun);
  process.stdout.write(JSON.stringify(out) + '\n');
}

export function serve(run) {
  process.on('unhandledRejection', (error) => process.stderr.write(`unhandled: ${error}\n`));
  createInterface({ input: process.stdin }).on('line', (line) => answer(JSON.parse(line), run));
}

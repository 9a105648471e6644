// What the gateway tells: its events as they come, and where its counters stand.

// names are the events, since EventSource has to be told of each. A test compares
// them with the gateway's.
export const names = [
  'error_recovery_attempt', 'error_recovery_success', 'error_recovery_failed', 'recovery_degraded', 'stream_resumed', 'target_cooled', 'fallback_used',
  'trajectory_compressed', 'context_truncated', 'tool_call_repaired', 'tool_failure_detected', 'guidance_injected', 'loop_detected', 'guidance_outcome', 'guidance_judged',
  'breaker_opened', 'breaker_closed', 'plan_made', 'late_answer', 'plan_approval', 'request_done',
];

const maxEvents = 5000;
const every = 2000;
const maxSamples = 450; // of a quarter of an hour

// What a view has not asked for yet is null.
export const data = { events: [], samples: [], meta: null, sessions: null, targets: null, keys: null, replicas: null, spent: null, approvals: [], online: false, dropped: 0 };

const known = new Set();
const listeners = new Set();
let soon = 0;
let wanted = []; // what the view shows besides

// onChange calls f soon after something has changed; several changes are one call.
export function onChange(f) { listeners.add(f); }

function changed() {
  if (!soon) soon = setTimeout(() => { soon = 0; for (const f of listeners) f(); }, 100);
}

const take = (message) => add(JSON.parse(message.data));

// compareIDs orders events by their ids, which begin with the time and end with a counter.
const compareIDs = new Intl.Collator('en', { numeric: true }).compare;

function add(event) {
  if (!event.id || known.has(event.id)) return; // after a pause some come twice
  known.add(event.id);
  let [low, high] = [0, data.events.length]; // history that was asked for comes late
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareIDs(data.events[middle].id, event.id) > 0) high = middle;
    else low = middle + 1;
  }
  data.events.splice(low, 0, event);
  if (data.events.length > maxEvents) {
    for (const old of data.events.splice(0, maxEvents / 10)) known.delete(old.id);
  }
  changed();
}

let source = null;

function listen() {
  source = new EventSource('events?last=1000');
  for (const name of names) source.addEventListener(name, take);
  source.addEventListener('dropped', (m) => { data.dropped += JSON.parse(m.data).dropped; changed(); });
  source.onopen = () => { data.online = true; changed(); };
  source.onerror = () => {
    data.online = false;
    changed();
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 5000); // the browser gives up after an error status
  };
}

// A page that one has left may be kept, with its connection, of which a browser has six.
addEventListener('pagehide', () => source?.close());
addEventListener('pageshow', (e) => { if (e.persisted) listen(); });

export async function ask(path, method, body) {
  const response = await fetch(path, { method: method || 'GET', headers: { Accept: 'application/json' }, body: body && JSON.stringify(body) });
  if (response.status === 403 && !method) location.reload(); // the cookie has ended: the form is there
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Error(body.error?.message || response.statusText);
  }
  return response.status === 204 ? null : response.json();
}

async function look() {
  try {
    const first = data.samples.length === 0;
    const lists = ['approvals', ...wanted];
    const [now, ...answers] = await Promise.all(['now' + (first ? '?series=180' : ''), ...lists].map((path) => ask(path)));
    if (data.meta && data.meta.replica !== now.replica) data.samples = []; // another process counts from zero
    data.meta = now;
    data.samples.push(...now.series, now.now);
    const oldest = Date.parse(now.now.time) - 15 * 60 * 1000;
    while (data.samples.length > maxSamples || Date.parse(data.samples[0].time) < oldest) data.samples.shift();
    lists.forEach((name, i) => { data[name] = answers[i][name]; });
  } catch {
    data.online = false;
  }
  changed();
}

export function start() {
  listen();
  const again = () => look().finally(() => setTimeout(again, document.hidden ? 5 * every : every));
  again();
}

export const refresh = look;

// healthy fetches requests to which nothing happened, which come by no stream: those that query wants.
export async function healthy(query) {
  const answer = await ask('events/history?requests=1&event=request_done&last=1000' + (query || '')).catch(() => ({ events: [] }));
  answer.events.forEach(add);
  changed();
  return answer.events.length;
}

// want names the lists that are asked for from now on, besides what every view shows.
export function want(lists) {
  wanted = lists;
  if (lists.length && data.meta) look();
}

// requests are the requests of the events, the newest first.
export function requests() {
  const byID = new Map();
  for (const e of data.events) {
    if (!e.request) continue;
    let r = byID.get(e.request);
    if (!r) byID.set(e.request, (r = { id: e.request, events: [], begun: e.time }));
    r.events.push(e);
    for (const field of ['model', 'session', 'key']) r[field] ??= e[field];
    if (e.event === 'request_done') r.done = e;
    if (e.class && !e.observed) r.lastClass = e.class;
  }
  return [...byID.values()].reverse();
}

// outcome is how a request ended for its client, in the gateway's own terms.
export function outcome(r) {
  const d = r.done;
  if (!d) return 'running';
  if (d.status === 499) return 'canceled';
  if (!d.class && (d.status || 0) < 400) return !d.attempt ? 'rejected' : d.recovery ? 'recovered' : d.fallback ? 'fallback' : 'ok';
  return d.attempt || r.events.length > 1 ? 'failed' : 'rejected';
}

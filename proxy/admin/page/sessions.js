// Sessions: agents' conversations, what their tools did, and what was done about it.
import { ask, data, refresh } from './data.js';
import { chip, clock, count, figure, h, panel, share, table, words } from './dom.js';

export const lists = ['sessions'];

let root = null;
let only = '';
let shown = [];

export function open(main, argument) {
  only = argument;
  root = h('div');
  main.append(h('div', { className: 'head' }, h('h1', {}, only ? 'Session' : 'Sessions'), only ? h('a', { href: '#sessions' }, 'all sessions') : null), root);
}

// sessions gathers what the events tell of each conversation, the latest first.
function sessions() {
  const all = new Map();
  const of = (id, time) => {
    let s = all.get(id);
    if (!s) all.set(id, (s = { id, models: new Set(), requests: new Set(), failures: [], notes: 0, outcomes: {}, loops: [], fits: [], input: 0, cached: 0 }));
    s.last = time;
    return s;
  };
  for (const e of data.events) {
    if (!e.session || e.observed) continue;
    const s = of(e.session, e.time);
    if (e.model) s.models.add(e.model);
    if (e.request) s.requests.add(e.request);
    switch (e.event) {
      case 'tool_failure_detected': s.failures.push(e); break;
      case 'guidance_injected': if (!e.held_out) s.notes++; break;
      case 'guidance_outcome': s.outcomes[e.cause] = (s.outcomes[e.cause] || 0) + 1; break;
      case 'loop_detected': s.loops.push(e); break;
      case 'trajectory_compressed': s.fits.push(e); break;
      case 'request_done': s.input += e.usage?.input || 0; s.cached += e.usage?.cache_read || 0;
    }
  }
  for (const o of data.sessions || []) of(o.session, o.since).stopped = o;
  return [...all.values()].filter((s) => !only || s.id === only).sort((a, b) => Boolean(b.stopped) - Boolean(a.stopped) || (a.last < b.last ? 1 : -1)).slice(0, 200);
}

async function resume(id, button) {
  button.disabled = true;
  try {
    await ask('sessions/' + encodeURIComponent(id), 'DELETE');
    await refresh();
  } catch (e) {
    button.disabled = false;
    button.title = button.textContent = e.message;
  }
}

async function decide(id, approve, button) {
  button.disabled = true;
  try {
    await ask('approvals/' + encodeURIComponent(id), 'POST', { approve });
    await refresh();
  } catch (e) {
    button.disabled = false;
    button.title = button.textContent = e.message;
  }
}

// approvals are plans for agents that are stuck, those first that wait for a person.
function approvals() {
  const list = data.approvals.filter((a) => !only || a.session === only);
  if (!list.length) return null;
  return panel('Plans for stuck agents', table([
    { name: 'Made', cell: (a) => clock(a.made) },
    { name: 'State', cell: (a) => (a.state === 'waiting' ? [h('button', { type: 'button', 'data-key': 'approve-' + a.id, click: (e) => decide(a.id, true, e.target) }, 'Approve'), ' ',
      h('button', { type: 'button', 'data-key': 'refuse-' + a.id, click: (e) => decide(a.id, false, e.target) }, 'Refuse')] : chip(a.state === 'approved' ? 'ok' : 'failed', a.state)), style: 'tight' },
    { name: 'Plan', cell: (a) => [h('b', {}, words(a.plan.strategy)), a.plan.tool ? [' ', chip('class', a.plan.tool)] : null, a.plan.parameters ? h('pre', { className: 'plan' }, a.plan.parameters) : null,
      a.plan.message ? h('p', { className: 'plan' }, a.plan.message) : null, a.plan.reasoning ? h('p', { className: 'none' }, a.plan.reasoning) : null], style: 'name' },
    { name: 'Confidence', cell: (a) => share(a.plan.confidence, 1), right: true, style: 'tight' },
    { name: 'Session', cell: (a) => h('a', { href: '#sessions/' + encodeURIComponent(a.session), 'data-key': 'plan-' + a.id }, a.session), style: 'name' },
    { name: 'Until', cell: (a) => clock(a.until), right: true },
  ], [...list].sort((a, b) => (b.state === 'waiting') - (a.state === 'waiting'))));
}

// ring is the last five failures of the agent's tools, the oldest first.
const ring = (s) => h('span', { className: 'ring' }, s.failures.slice(-5).map((e) => h('i', { title: words(e.category || 'failure') + ', ' + (e.tool || '') + ', ' + clock(e.time) })));

// reason is what a session was stopped for.
function reason(o) {
  if (o.budget) return 'stopped at its limit of ' + o.budget + '; raise limits.session to prevent it';
  const what = o.category === 'none' ? 'failures of an unknown kind (' + o.evidence + ')' : words(o.category);
  return 'stopped after ' + o.failures + ' identical failures of ' + (o.tool || 'a tool') + ': ' + what + '; breaker.failures: 0 turns this off';
}

const columns = [
  { name: 'Session', cell: (s) => h('a', { href: '#sessions/' + encodeURIComponent(s.id), 'data-key': s.id }, s.id), style: 'name' },
  { name: 'State', cell: (s) => (s.stopped ? [chip('failed', 'stopped', reason(s.stopped)), ' ',
    h('span', { className: 'none' }, reason(s.stopped)), ' ', h('button', { type: 'button', 'data-key': 'resume-' + s.id, click: (e) => resume(s.id, e.target) }, 'Resume')] : chip('ok', 'running')) },
  { name: 'Model', cell: (s) => (s.models.size ? h('span', { title: [...s.models].join(', ') }, [...s.models].slice(-3).join(', ') + (s.models.size > 3 ? ' and ' + (s.models.size - 3) + ' more' : '')) : '–'), style: 'name' },
  { name: 'Tools failed', cell: (s) => (s.failures.length ? [ring(s), ' ', count(s.failures.length)] : '–'), style: 'tight' },
  { name: 'Notes', cell: (s) => (s.notes ? count(s.notes) : '–'), right: true },
  { name: 'After a failure', cell: (s) => Object.entries(s.outcomes).map(([k, n]) => chip(k === 'recovered' ? 'ok' : k === 'repeated' ? 'warn' : 'class', words(k) + ' ' + n)) },
  { name: 'Loops', cell: (s) => (s.loops.length ? count(s.loops.length) : '–'), right: true },
  { name: 'Shortened', cell: (s) => (s.fits.length ? count(s.fits.at(-1).original_tokens) + ' → ' + count(s.fits.at(-1).compressed_tokens) : '–'), style: 'tight' },
  { name: 'Cache', cell: (s) => share(s.cached, s.input), right: true, style: 'tight' },
  { name: 'Last', cell: (s) => clock(s.last), right: true, style: 'tight' },
];

function detail(s) {
  return [
    panel('Shortened histories', s.fits.length ? table([
      { name: 'Time', cell: (e) => clock(e.time) },
      { name: 'Why', cell: (e) => words(e.cause || '') },
      { name: 'By', cell: (e) => (e.tiers || []).map((t) => chip('class', words(t))) },
      { name: 'Tokens before', cell: (e) => count(e.original_tokens), right: true },
      { name: 'after', cell: (e) => count(e.compressed_tokens), right: true },
      { name: 'Steps', cell: (e) => count(e.steps_compressed), right: true },
    ], s.fits) : h('p', { className: 'none' }, 'None.')),
    panel('Tools and notes', table([
      { name: 'Time', cell: (e) => clock(e.time) },
      { name: 'Event', cell: (e) => chip('event', words(e.event)) },
      { name: 'What', cell: (e) => [e.tool, e.category, e.loop, e.about, e.event.startsWith('plan_') ? [e.strategy, e.band, e.cause] : null, ...(e.strategies || []), e.event === 'guidance_outcome' || e.event === 'guidance_judged' ? e.cause : ''].flat().filter(Boolean).map((t) => words(t)).join(' · '), style: 'name' },
      { name: 'Times', cell: (e) => e.repetitions ?? e.occurrence ?? '', right: true },
      { name: 'Request', cell: (e) => (e.request ? h('a', { href: '#request/' + encodeURIComponent(e.request), 'data-key': e.id }, e.request) : '') },
    ], data.events.filter((e) => e.session === s.id && /tool_failure|guidance|loop|breaker|plan_/.test(e.event)).slice(-200).reverse())),
  ];
}

export function draw() {
  shown = sessions();
  const plans = approvals() || '';
  if (!shown.length) {
    root.replaceChildren(plans, h('section', { className: 'panel' }, h('p', { className: 'none' }, only ? 'No data for this session. Rebound keeps only the latest events.' :
      'No session has had a failed tool, a repetition or a shortened history yet.')));
    return;
  }
  root.replaceChildren(plans, h('section', { className: 'panel' }, figure('sessions', shown.length, { hidden: true }), table(columns, shown)), ...(only ? detail(shown[0]) : []));
}

export const rows = () => shown.map((s) => ({ session: s.id, stopped: Boolean(s.stopped), models: [...s.models].join(' '), requests: s.requests.size, tool_failures: s.failures.length,
  notes: s.notes, ...Object.fromEntries(Object.entries(s.outcomes).map(([k, n]) => ['outcome_' + k, n])), loops: s.loops.length, fitted: s.fits.length, last: s.last }));

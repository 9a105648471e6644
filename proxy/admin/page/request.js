// A request: its phases and attempts in time, and every decision.
import { ask, data, healthy, outcome, requests } from './data.js';
import { show } from './diff.js';
import { chip, clock, count, duration, figure, h, panel, table, words } from './dom.js';
import { outcomeNames } from './now.js';

let root = null;
let id = '';
let drawn = 0;
let recorded = null; // what the gateway tells of the bodies
let chosen = 0; // the attempt that is shown beside the client's request
let panes = null;

export function open(main, argument) {
  id = argument;
  drawn = -1;
  root = main;
  recorded = null;
  panes = h('section', { className: 'panel', hidden: true });
  if (!find()) healthy('&request=' + encodeURIComponent(id));
}

// look asks for the bodies, which are stored a moment after the answer.
async function look(again) {
  const asked = id;
  const answer = await ask('recordings/' + encodeURIComponent(asked)).catch((e) => ({ why: e.message }));
  if (asked !== id) return;
  if (!answer.attempts && again > 0) setTimeout(() => { if (asked === id) look(again - 1); }, 1000);
  recorded = answer;
  chosen = Math.max(0, answer.attempts?.findLastIndex((a) => !a.same) ?? 0);
  drawPanes();
}

// forget deletes the recordings at a path, after a question.
async function forget(path, question, button) {
  if (!confirm(question)) return;
  try {
    await ask('recordings' + path, 'DELETE');
    await look(0);
  } catch (e) {
    button.title = button.textContent = e.message;
  }
}

const unseen = (b) => h('p', { className: 'none' }, 'Too large to record: ' + count(b.too_large) + ' bytes.');

function drawPanes() {
  panes.hidden = false;
  const title = h('h2', {}, 'Before and after');
  if (!recorded.attempts) {
    panes.replaceChildren(title, h('p', { className: 'none' }, recorded.why + '.'));
    return;
  }
  const a = recorded.attempts[chosen];
  panes.replaceChildren(h('div', { className: 'head' }, title, recorded.attempts.map((one, i) => h('button', { type: 'button', className: 'attempt', 'aria-pressed': String(i === chosen), 'data-key': 'attempt-' + one.attempt,
    title: one.target, click: () => { chosen = i; drawPanes(); } }, 'Attempt ' + one.attempt + (one.same ? ', unchanged' : ''))),
    h('button', { type: 'button', 'data-key': 'forget', click: (e) => forget('/' + encodeURIComponent(id), 'Delete the recording of this request?', e.target) }, 'Delete'),
    recorded.session ? h('button', { type: 'button', 'data-key': 'forget-session', click: (e) => forget('?session=' + encodeURIComponent(recorded.session), 'Delete all recordings of this session?', e.target) }, 'Delete its session’s') : null),
  !a ? h('p', { className: 'none' }, 'Nothing was sent upstream.') : a.same ? h('p', { className: 'none' }, 'The client’s bytes went to ' + a.target + ' unchanged.') :
    recorded.client.too_large || a.too_large ? unseen(recorded.client.too_large ? recorded.client : a) : show(recorded.client.body, a.body));
}

const find = () => requests().find((r) => r.id === id);

// phases are the bars of the timeline, in milliseconds after the request's arrival.
// Before it is done, what is known of it comes from the decisions.
export function phases(r) {
  const d = r.done;
  const begun = d ? Date.parse(d.time) - (d.duration_ms || 0) : Date.parse(r.begun) - (r.events[0].duration_ms || 0);
  const out = [];
  const decisions = r.events.filter((e) => e.event === 'error_recovery_attempt' && !e.observed);
  const attempts = d?.attempts || (d ? !d.attempt ? [] : [{ target: d.target, upstream_key: d.upstream_key, class: d.class, start_ms: d.prepare_ms > 1 ? d.prepare_ms : 0, duration_ms: d.duration_ms - (d.prepare_ms > 1 ? d.prepare_ms : 0) }] :
    decisions.map((e) => ({ target: e.target, upstream_key: e.upstream_key, class: e.class, start_ms: Date.parse(e.time) - begun - (e.duration_ms || 0), duration_ms: e.duration_ms })));
  if (d?.prepare_ms > 1) out.push({ kind: 'wait', label: 'Gateway', text: 'before the first attempt: plan, fit, choose', from: 0, to: d.prepare_ms });
  attempts.forEach((a, i) => {
    const from = a.start_ms || 0;
    const to = from + (a.duration_ms || 0);
    out.push({ kind: a.class ? 'failed' : 'ok', label: 'Attempt ' + (i + 1), text: a.target, key: a.upstream_key, class: a.class, from, to, parallel: a.parallel, strategy: a.strategy });
    const e = decisions[i];
    if (e?.wait_ms && a.class) out.push({ kind: 'wait', label: 'Wait', text: e.strategy === 'wait' ? 'requested by the upstream' : 'before ' + words(e.strategy), from: to, to: to + e.wait_ms });
  });
  const end = d ? d.duration_ms || 0 : Math.max(...out.map((p) => p.to), 1);
  return { list: out, end: Math.max(end, ...out.map((p) => p.to), 1), begun };
}

function timeline(r) {
  const { list, end } = phases(r);
  const at = (ms) => (100 * ms) / end + '%';
  const rows = list.map((p) => h('li', { className: p.kind },
    h('span', { className: 'label' }, h('b', {}, p.label), ' ', h('span', { className: 'name', title: p.text }, p.text || ''), p.key && !p.key.startsWith('client-') ? h('span', { className: 'key' }, '#' + p.key) : null,
      p.parallel ? chip('class', 'beside') : null),
    h('span', { className: 'track', title: duration(p.from) + ' to ' + duration(p.to) },
      h('i', { style: { left: at(p.from), width: 'max(3px, ' + at(p.to - p.from) + ')' } }),
      r.done?.ttfb_ms && p.kind === 'ok' && !p.class ? h('em', { style: { left: at(Math.min(r.done.ttfb_ms, end)) }, title: 'first byte for the client after ' + duration(r.done.ttfb_ms) }) : null),
    h('span', { className: 'took' }, duration(p.to - p.from), p.class ? [' ', h('span', { className: 'chip failed' }, words(p.class))] : null)));
  const marks = [0, 0.5, 1].map((f) => h('span', { style: { left: 100 * f + '%' } }, duration(Math.round(end * f))));
  return h('ol', { className: 'timeline' }, rows, h('li', { className: 'scale', 'aria-hidden': 'true' }, h('span'), h('div', {}, marks), h('span')));
}

const hidden = ['id', 'time', 'level', 'event', 'request', 'session', 'model', 'mode', 'streamed', 'attempts', 'key'];

// fields are what an event tells, but for what the whole request has in common.
function fields(e) {
  return Object.entries(e).filter(([k, v]) => !hidden.includes(k) && !(k === 'upstream_key' && String(v).startsWith('client-'))).map(([k, v]) => h('span', { className: 'field' }, h('b', {}, words(k)), ' ',
    typeof v === 'object' && v !== null ? (Array.isArray(v) ? v.join(', ') : Object.entries(v).map(([a, b]) => words(a) + ' ' + b).join(', ')) : String(v)));
}

const tokens = (u) => (u ? count((u.input || 0) + (u.output || 0)) : '0');

export function draw() {
  const r = find();
  if (!r) {
    if (drawn !== 0) root.replaceChildren(h('a', { href: '#now' }, '← Now'), h('p', { className: 'none' }, 'No data for this request. Rebound keeps only the latest events and, on each replica, the last 1,000 requests without problems.'));
    drawn = 0;
    return;
  }
  if (drawn === r.events.length) return;
  drawn = r.events.length;
  const d = r.done;
  if (d && !recorded) {
    recorded = { why: 'looking' };
    look(Date.now() - Date.parse(d.time) < 5000 ? 3 : 0);
  }
  const fact = (name, title, value) => h('div', {}, h('dt', {}, title), h('dd', {}, figure(name, value)));
  root.replaceChildren(
    h('a', { href: '#now' }, '← Now'),
    h('div', { className: 'head' }, h('h1', { className: 'name' }, r.model || 'Request'), chip(outcome(r), outcomeNames[outcome(r)])),
    h('dl', { className: 'facts' },
      fact('request', 'Request', r.id),
      h('div', {}, h('dt', {}, 'Session'), h('dd', {}, r.session ? h('a', { href: '#sessions/' + encodeURIComponent(r.session) }, figure('session', r.session)) : '–')),
      fact('began', 'Began', clock(phases(r).begun)),
      fact('took', 'Took', d ? duration(d.duration_ms) : 'under way'),
      fact('first-byte', 'First byte', d?.ttfb_ms ? duration(d.ttfb_ms) : '–'),
      fact('attempts', 'Attempts', d?.attempt ?? r.events.at(-1).attempt ?? '–'),
      fact('status', 'Client’s status', d ? (d.status === 499 ? 'none: the client left' : String(d.status ?? '–')) : '–'),
      fact('done', 'Done', d?.recovery || '–'),
      fact('finish', 'Finish reason', d?.finish ? words(d.finish) : '–'),
      fact('answered-by', 'Answered by', d ? d.target || 'the gateway' : '–'),
      fact('used', 'Tokens of the answer', tokens(d?.usage)),
      fact('cost', 'Extra tokens', tokens(d?.cost)),
      d?.upstream_request ? fact('upstream-request', 'Upstream’s request id', d.upstream_request) : null,
      d?.key ? fact('key', 'Gateway key', d.key) : null,
      d?.spent ? fact('spent', 'Money', d.spent) : null),
    panel('Timeline', timeline(r)),
    panel('What happened', table([
      { name: 'After', cell: (e) => duration(Math.max(0, Date.parse(e.time) - phases(r).begun)), right: true, style: 'tight' },
      { name: 'Event', cell: (e) => chip(e.level === 'WARN' ? 'warn' : 'event', words(e.event)) },
      { name: 'Details', cell: fields, style: 'fields' },
    ], r.events, { className: 'events' })),
    panes);
}

export const rows = () => find()?.events || [];

// all is rows, and the bodies where they are recorded.
export const all = () => (recorded?.attempts ? { events: rows(), recording: recorded } : rows());

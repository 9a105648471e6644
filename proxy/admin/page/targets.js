// Targets: upstreams, what is kept away from them and why, and what was learned.
import { ask, data, refresh } from './data.js';
import { bars, chip, clock, count, duration, figure, h, panel, share, table, words } from './dom.js';

let root = null;

export function open(main) {
  root = h('div');
  main.append(h('div', { className: 'head' }, h('h1', {}, 'Targets')), root);
}

const about = { breaker: 'too much failed: one probe at a time', 'cool-down': 'its key is not used', learned: 'from what it refused' };

async function reset(target, button) {
  if (!confirm('Forget all that is kept of ' + target + '?')) return;
  try {
    await ask('targets?target=' + encodeURIComponent(target), 'DELETE');
    await refresh();
  } catch (e) {
    button.title = button.textContent = e.message;
  }
}

// evidence is the last event that tells why a target is as it is.
function evidence(m) {
  const [place] = m.target.split('#');
  const names = { breaker: ['breaker_opened', 'error_recovery_attempt'], 'cool-down': ['target_cooled'], learned: ['error_recovery_attempt'] }[m.kind] || [];
  const e = data.events.findLast((x) => x.target === place && names.includes(x.event));
  if (!e) return '–';
  const text = [e.class && words(e.class), e.rule, e.status].filter(Boolean).join(' · ') || words(e.event);
  return [clock(e.time) + ' ', e.request ? h('a', { href: '#request/' + encodeURIComponent(e.request), 'data-key': 'why-' + m.kind + m.target }, text) : text];
}

// age is how long ago something was.
const age = (time) => duration(Math.max(0, Math.floor((Date.now() - Date.parse(time)) / 1000) * 1000)) + ' ago';

const columns = [
  { name: 'Target', cell: (m) => m.target, style: 'name' },
  { name: 'What', cell: (m) => chip(m.kind === 'learned' ? 'class' : 'warn', m.kind, about[m.kind]) },
  { name: 'Detail', cell: (m) => m.detail || '–', style: 'name' },
  { name: 'Evidence', cell: evidence, style: 'name' },
  { name: 'Since', cell: (m) => (m.since ? age(m.since) : '–'), right: true, style: 'tight' },
  { name: 'For', cell: (m) => { const ms = Date.parse(m.until) - Date.now(); return ms > 0 ? duration(Math.ceil(ms / 1000) * 1000) : m.kind === 'breaker' ? 'half-open' : 'over'; }, right: true, style: 'tight' },
  { name: '', cell: (m) => h('button', { type: 'button', 'data-key': 'reset-' + m.kind + m.target, click: (e) => reset(m.target, e.target) }, 'Reset'), right: true },
];

function upstream([name, classes]) {
  const all = Object.values(classes).reduce((a, b) => a + b, 0);
  const good = (classes.ok || 0) + (classes.canceled || 0);
  return h('section', { className: 'panel' }, h('div', { className: 'head' }, h('h2', { className: 'name' }, name),
    h('span', { className: 'note' }, figure('attempts-' + name, count(all)), ' attempts, ', figure('good-' + name, share(good, all)), ' answered')),
    bars(Object.entries(classes).filter(([c]) => c !== 'ok' && c !== 'canceled'), 'failed', 'No attempt failed.'));
}

export function draw() {
  const now = data.samples.at(-1);
  const list = Object.entries(now?.attempts || {}).filter(([, classes]) => Object.keys(classes).length);
  root.replaceChildren(
    panel('What is kept of them', data.targets.length ? table(columns, data.targets) :
      h('p', { className: 'none' }, 'Every target may be asked, and nothing was learned.')),
    h('div', { className: 'two' }, list.map(upstream)),
    data.keys.length ? panel('Gateway keys', table([
      { name: 'Key', cell: (k) => k.key || 'all clients', style: 'name' },
      { name: 'Used of its limits', cell: (k) => k.limits.map((l) => chip(l.used >= l.of ? 'warn' : 'class', words(l.limit) + ' ' + count(l.used) + ' of ' + count(l.of))) },
    ], data.keys)) : '');
}

export const rows = () => data.targets;

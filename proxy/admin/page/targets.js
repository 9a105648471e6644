// Targets: what is kept away from them and why, and what was learned of them.
import { ask, data, refresh } from './data.js';
import { age, chip, clock, count, figure, h, panel, table, words } from './dom.js';

export const lists = ['targets', 'keys', 'replicas', 'spent'];

const most = 300; // rows of a table
let root = null;
const unfolded = new Set();

export function open(main) {
  root = h('div');
  main.append(h('div', { className: 'head' }, h('h1', {}, 'Targets')), root);
}

// about says what it means that a target is kept away.
const about = { breaker: 'too many failures: one probe at a time', 'cool-down': 'its key is not used', disabled: 'disabled by an operator', switched: 'restricted by an operator' };

async function reset(m, button) {
  if (!confirm('Forget for ' + m.target + ': ' + (m.kind === 'pace' ? 'its pace' : m.item) + '?')) return;
  try {
    if (m.kind === 'disabled' || m.kind === 'switched') await ask('switches?of=' + m.item + '&name=' + encodeURIComponent(m.target), 'DELETE');
    else await ask('targets?target=' + encodeURIComponent(m.target) + '&item=' + encodeURIComponent(m.item), 'DELETE');
    await refresh();
  } catch (e) {
    button.title = button.textContent = e.message;
  }
}

const name = (m) => [m.kind, m.item, m.detail, m.target].join(' ');

// evidence is what told it: the gateway says so of what it learned; else it is the
// last event about the target.
function evidence(m) {
  if (m.kind !== 'breaker' && m.kind !== 'cool-down') {
    return [m.evidence, m.request ? [m.evidence ? ', ' : '', h('a', { href: '#request/' + encodeURIComponent(m.request), 'data-key': 'why-' + name(m) }, 'its request')] : null];
  }
  const [place] = m.target.split('#');
  const names = m.kind === 'breaker' ? ['breaker_opened', 'error_recovery_attempt'] : ['target_cooled'];
  const e = data.events.findLast((x) => x.target === place && names.includes(x.event));
  if (!e) return words(m.evidence || '–');
  const text = [e.class && words(e.class), e.rule, e.status].filter(Boolean).join(' · ') || words(e.event);
  return [clock(e.time) + ' ', e.request ? h('a', { href: '#request/' + encodeURIComponent(e.request), 'data-key': 'why-' + name(m) }, text) : text];
}

function left(m) {
  if (!m.until) return '–';
  const ms = Date.parse(m.until) - Date.now();
  return ms > 0 ? age(ms) : m.kind === 'breaker' ? 'half-open' : 'over';
}

const columns = [
  { name: 'Target', cell: (m) => m.target, style: 'name' },
  { name: 'What', cell: (m) => (about[m.kind] ? [chip('warn', m.kind, about[m.kind]), ' ', m.detail || ''] : m.detail), style: 'name' },
  { name: 'Evidence', cell: evidence, style: 'name' },
  { name: 'Age', cell: (m) => (m.since ? age(Date.now() - Date.parse(m.since)) : '–'), right: true, style: 'tight' },
  { name: 'Left', cell: left, right: true, style: 'tight' },
  { name: '', cell: (m) => h('button', { type: 'button', 'data-key': 'reset-' + name(m), 'aria-label': 'Reset ' + m.item + ' of ' + m.target, click: (e) => reset(m, e.target) }, 'Reset'), right: true },
];

const marks = (list) => [table(columns, list.slice(0, most)), list.length > most ? h('p', { className: 'none' }, count(list.length - most) + ' more: save them as JSON, or rebound targets.') : null];

// folded is a panel that is opened when somebody wants to see it, and stays so.
function folded(title, list) {
  if (!list.length) return null;
  const open = unfolded.has(title);
  return h('details', { className: 'panel', open, toggle: (e) => { if (e.target.open !== unfolded.has(title)) { unfolded[e.target.open ? 'add' : 'delete'](title); draw(); } } },
    h('summary', { 'data-key': 'fold-' + title }, h('h2', {}, title), ' ', figure('fold-' + title, count(list.length))), open ? marks(list) : null);
}

export function draw() {
  if (!data.targets) {
    root.replaceChildren(h('p', { className: 'none' }, 'Looking …'));
    return;
  }
  const away = data.targets.filter((m) => ['breaker', 'cool-down', 'disabled', 'switched'].includes(m.kind));
  const told = data.targets.filter((m) => m.item === 'listed window');
  const pace = data.targets.filter((m) => m.kind === 'pace');
  const learned = data.targets.filter((m) => ![away, told, pace].some((l) => l.includes(m)));
  root.replaceChildren(...[
    panel('Not used now', away.length ? marks(away) : h('p', { className: 'none' }, 'All targets are available.')),
    panel('Learned from answers and refusals', learned.length ? marks(learned) : h('p', { className: 'none' }, 'Nothing yet: all requests are sent unchanged.')),
    folded('Pace: how long the first token takes', pace),
    folded('Windows from lists of models', told),
    data.replicas?.length > 1 || data.replicas?.some((r) => r.refused || !r.store_up) ? panel('Replicas', table([
      { name: 'Replica', cell: (r) => [r.id, r.self ? ' (this one)' : ''], style: 'name' },
      { name: 'Address', cell: (r) => r.address, style: 'name' },
      { name: 'Version', cell: (r) => r.version, style: 'name' },
      { name: 'Configuration', cell: (r) => [r.config, ' ', r.refused ? chip('failed', 'a newer one was rejected', r.refused) : null], style: 'name' },
      { name: 'Store', cell: (r) => chip(r.store_up ? 'ok' : 'failed', r.store_up ? 'answers' : 'away'), style: 'tight' },
      { name: 'Up for', cell: (r) => age(Date.now() - Date.parse(r.started)), right: true, style: 'tight' },
    ], data.replicas)) : null,
    data.spent?.length ? panel('What recovery cost, by day (UTC)', table([
      { name: 'Day', cell: (s) => s.day, style: 'tight' },
      { name: 'For', cell: (s) => [chip('class', s.of), ' ', s.name], style: 'name' },
      { name: 'Tokens', cell: (s) => count(s.tokens), right: true },
      { name: 'Money', cell: (s) => (s.money ? s.money.toFixed(4) : '–'), right: true },
    ], data.spent.flatMap((d) => [['model', d.models], ['key', d.keys]].flatMap(([of, list]) => Object.entries(list).map(([name, n]) => ({ day: d.day, of, name, ...n })).sort((a, b) => b.tokens - a.tokens))))) : null,
    data.keys?.length ? panel('Gateway keys', table([
      { name: 'Key', cell: (k) => k.key || 'all clients', style: 'name' },
      { name: 'Limits used', cell: (k) => k.limits.map((l) => chip(l.of && l.used >= l.of ? 'warn' : 'class', words(l.limit) + ' ' + count(l.used) + (l.of ? ' of ' + count(l.of) : ', no limit'))) },
    ], data.keys)) : null].filter(Boolean));
}

export const rows = () => data.targets || [];

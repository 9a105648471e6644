// Now: what the gateway does, and the requests that needed it.
import { data, healthy, outcome, requests } from './data.js';
import { age, bars, brief, chip, clock, count, duration, figure, h, many, panel, rate, share, table, words } from './dom.js';

export const lists = ['targets', 'sessions'];

const perChart = 90; // points
let parts = null;
const perList = 50; // requests, until somebody wants more
let filter = '';
let wanted = ''; // outcome of the requests that are listed; all of them if empty
let longest = perList;
let minutes = 15;
let shown = [];

export function open(main) {
  const input = h('input', { type: 'search', placeholder: 'Filter: id, model, session, key, class, target …', value: filter, 'aria-label': 'Filter requests',
    input: (e) => { filter = e.target.value.toLowerCase(); draw(); } });
  const pick = (name) => { input.value = filter = name; wanted = ''; draw(); input.scrollIntoView({ block: 'center' }); };
  const period = h('select', { 'aria-label': 'Period', change: (e) => { minutes = Number(e.target.value); draw(); } },
    [1, 5, 15].map((n) => h('option', { value: n, selected: n === minutes }, 'last ' + n + ' min')));
  const tabs = ['', ...Object.keys(outcomeNames)].map((name) => h('button', { type: 'button', value: name, click: () => { wanted = name; draw(); } }));
  longest = perList;
  parts = { wrong: h('div'), upstreams: h('div'), tiles: h('div', { className: 'tiles' }), strategies: h('div'), classes: h('div'), log: h('div'), tabs, pick };
  parts.rates = h('div', { className: 'chart' });
  parts.first = h('div', { className: 'chart' });
  main.append(
    h('div', { className: 'head' }, h('h1', {}, 'Now'), period),
    parts.wrong,
    parts.tiles,
    parts.upstreams,
    h('div', { className: 'two' }, panel('Requests a second', parts.rates), panel('Time to first token, seconds', parts.first)),
    h('div', { className: 'two' }, panel('Recovered by', parts.strategies), panel('Failed attempts', parts.classes)),
    h('section', { className: 'panel' }, h('div', { className: 'head' }, h('h2', {}, 'Requests'), h('button', { type: 'button', title: 'Adds this replica’s last 1,000 requests without problems', click: () => healthy() }, 'Add healthy ones'), h('div', { className: 'tabs', role: 'group', 'aria-label': 'Outcome' }, tabs), input), parts.log));
}

// span is the samples of the period, and the first and the last of them.
function span() {
  if (!data.samples.length) return null;
  const last = data.samples.at(-1);
  const from = Date.parse(last.time) - minutes * 60000;
  const list = data.samples.filter((s) => Date.parse(s.time) >= from);
  // Where the process is younger than the period, it began at zero.
  const young = Date.parse(data.meta.started) >= from;
  const first = young ? { time: data.meta.started, requests: {}, tokens: {}, extra: {}, compressed: {}, strategies: {}, attempts: {}, ttfb: [] } : list[0];
  return { list, first, last };
}

const grew = (a, b, part, name) => (b[part][name] || 0) - (a[part][name] || 0);

// quantile is the bound below which the share q of first tokens came, in seconds.
export function quantile(a, b, q) {
  const bounds = data.meta.ttfb_bounds;
  const of = (i) => (b.ttfb[i] || 0) - (a.ttfb[i] || 0);
  const all = of(bounds.length);
  if (!all) return null;
  let below = 0;
  for (let i = 0; i < bounds.length; i++) {
    const to = of(i);
    if (to >= q * all) return (i ? bounds[i - 1] : 0) + ((bounds[i] - (i ? bounds[i - 1] : 0)) * (q * all - below)) / (to - below || 1);
    below = to;
  }
  return bounds.at(-1);
}

function tile(name, title, value, note, kind) {
  return h('div', { className: 'tile ' + (kind || '') }, h('h3', {}, title), figure(name, value, { className: 'value' }), h('span', { className: 'note' }, note || ''));
}

function drawTiles({ first, last }) {
  const seconds = Math.max(1, (Date.parse(last.time) - Date.parse(first.time)) / 1000);
  const n = (name) => grew(first, last, 'requests', name);
  const [ok, fallback, recovered, failed] = [n('ok'), n('fallback'), n('recovered'), n('failed')];
  const all = ok + fallback + recovered + failed;
  const extra = grew(first, last, 'extra', 'input') + grew(first, last, 'extra', 'output');
  const input = grew(first, last, 'tokens', 'input');
  const seconds50 = quantile(first, last, 0.5);
  const seconds95 = quantile(first, last, 0.95);
  const seconds1 = (s) => (s === null ? '–' : duration(1000 * s));
  const part = (kind, n) => (n > 0 ? h('i', { className: kind, style: { flexGrow: n } }) : null);
  parts.tiles.replaceChildren(
    h('div', { className: 'tile ended' },
      h('div', { className: 'three' },
        tile('ok', 'Unchanged', share(ok, all), many(ok, 'request'), 'ok'),
        tile('fallback', 'Fallback', share(fallback, all), many(fallback, 'request'), fallback ? 'fallback' : ''),
        tile('recovered', 'Recovered', share(recovered, all), many(recovered, 'request'), 'recovered'),
        tile('failed', 'Failed', share(failed, all), many(failed, 'request'), failed ? 'failed' : '')),
      h('div', { className: 'stack', role: 'img', 'aria-label': 'How requests ended' }, part('ok', ok), part('fallback', fallback), part('recovered', recovered), part('failed', failed))),
    tile('rate', 'Requests / s', rate(all / seconds), [figure('in-flight', count(last.in_flight)), ' in flight now']),
    tile('first-token', 'First token', seconds1(seconds50), '95 %: ' + seconds1(seconds95)),
    tile('cache', 'Prompt cache', share(grew(first, last, 'tokens', 'cache_read'), input), 'of ' + brief(input) + ' tokens'),
    tile('extra', 'Extra tokens', count(extra), 'for recovery'),
    tile('left-out', 'Removed tokens', count(grew(first, last, 'compressed', 'before') - grew(first, last, 'compressed', 'after')), 'by fitting'));
}

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(); }

function plot(into, series, values) {
  const width = into.clientWidth;
  let p = into.plot;
  if (!p || p.lines !== values.length) {
    const axis = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '11px system-ui', size: 40 };
    p = into.plot = new uPlot({
      width, height: 160, padding: [10, 6, 0, 0], legend: { live: true }, cursor: { y: false }, scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.1] } },
      axes: [{ ...axis, size: 26, space: 80, values: (_, ticks) => ticks.map((t) => (ticks[1] - ticks[0] < 60 ? clock(t * 1000) : clock(t * 1000).slice(0, 5))) }, axis],
      series: [{ label: 'Time', value: (_, t) => (t === null ? '–' : clock(t * 1000)) }, ...series.map(([label, name]) => ({
        label, stroke: colour(name), width: 2, points: { show: false }, spanGaps: true, value: (_, v) => (v === null || v === undefined ? '–' : v.toFixed(2)) }))],
    }, values, into);
    p.lines = values.length;
  }
  if (p.width !== width && width > 0) p.setSize({ width, height: 160 });
  p.setData(values);
  if (p.cursor.left < 0 && values[0].length) p.setLegend({ idx: values[0].length - 1 }); // the latest, until somebody points at another
}

function drawCharts({ list }) {
  // Points of equal length: samples come every five seconds, and every two while one looks.
  const step = Math.max(5, (minutes * 60) / perChart);
  const points = [];
  for (const s of list) {
    if (!points.length || Date.parse(s.time) - Date.parse(points.at(-1).time) >= 1000 * step * 0.95) points.push(s);
  }
  const x = [], lines = [[], [], [], []], first = [[], []];
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    const seconds = (Date.parse(b.time) - Date.parse(a.time)) / 1000;
    x.push(Date.parse(b.time) / 1000);
    ['ok', 'fallback', 'recovered', 'failed'].forEach((name, k) => lines[k].push(grew(a, b, 'requests', name) / seconds));
    [0.5, 0.95].forEach((q, k) => first[k].push(quantile(a, b, q)));
  }
  plot(parts.rates, [['straight away', 'ok'], ['by fallback', 'warn'], ['recovered', 'recovered'], ['failed', 'failed']], [x, ...lines]);
  plot(parts.first, [['half', 'ok'], ['95 %', 'warn']], [x, ...first]);
}

const failures = (classes) => Object.entries(classes).filter(([c, n]) => c !== 'ok' && c !== 'canceled' && n > 0).sort((a, b) => b[1] - a[1]);
const sum = (classes) => Object.values(classes).reduce((a, b) => a + b, 0);

// attempts are those at each upstream since a sample, by class; configured ones are always there.
const attempts = (first, last) => Object.entries(last.attempts).filter(([name, c]) => name !== 'other' || sum(c)).sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([name, classes]) => [name, Object.fromEntries(Object.entries(classes).map(([c, n]) => [c, n - (first.attempts[name]?.[c] || 0)]))]);

const away = () => (data.targets || []).filter((m) => ['breaker', 'cool-down', 'disabled'].includes(m.kind));

const upstreams = [
  { name: 'Upstream', cell: ([name]) => name, style: 'name strong' },
  { name: 'Now', cell: ([name]) => { const n = away().filter((m) => m.target.startsWith(name + '/') || m.target === name); return n.length ? n.map((m) => chip('warn', m.kind, m.target)) : chip('ok', 'asked'); }, style: 'tight' },
  { name: 'Attempts', cell: ([name, c]) => figure('attempts-' + name, count(sum(c))), right: true, style: 'tight' },
  { name: 'Answered', cell: ([name, c]) => (sum(c) ? h('span', { className: 'range' }, h('span', { className: 'track', 'aria-hidden': 'true' }, h('i', { className: 'ok', style: { width: (100 * ((c.ok || 0) + (c.canceled || 0))) / sum(c) + '%' } })),
    figure('good-' + name, share((c.ok || 0) + (c.canceled || 0), sum(c)))) : '–'), style: 'wide' },
  { name: 'Failed, by class', cell: ([, c]) => { const list = failures(c); return list.length ? list.map(([name, n]) => chip('class', words(name) + ' ' + count(n))) : '–'; }, style: 'name' },
];

// wrong lists what is wrong now: each item says what, since when, and where more is to be seen.
function wrong() {
  const list = (data.meta?.trouble || []).map((text) => [text, 'targets']);
  for (const m of away()) {
    const since = m.since ? ' for ' + age(Date.now() - Date.parse(m.since)) : '';
    const what = { breaker: ' has failed' + since, 'cool-down': ' is not used' + since, disabled: ' is disabled' }[m.kind];
    list.push([m.target + what + (m.evidence ? ': ' + words(m.evidence) : ''), 'targets']);
  }
  const last = data.samples.at(-1);
  const minute = data.samples.find((s) => Date.parse(s.time) >= Date.parse(last.time) - 60000);
  for (const [name, c] of attempts(minute, last)) {
    const bad = failures(c).reduce((n, [, k]) => n + k, 0);
    if (bad >= 5 && bad > 0.2 * sum(c)) list.push([name + ': ' + share(bad, sum(c)) + ' of the attempts in the last minute failed', 'targets']);
  }
  if (data.sessions?.length) list.push([many(data.sessions.length, 'session') + ' stopped', 'sessions']);
  return list;
}

function drawUpstreams({ first, last }) {
  const list = wrong();
  parts.wrong.replaceChildren(list.length ? h('section', { className: 'panel wrong', role: 'status' }, h('h2', {}, 'Problems now'),
    h('ul', {}, list.slice(0, 12).map(([text, view]) => h('li', {}, h('a', { href: '#' + view }, text)))), list.length > 12 ? h('p', { className: 'none' }, count(list.length - 12) + ' more.') : null) : '');
  parts.upstreams.replaceChildren(panel('Upstreams', table(upstreams, attempts(first, last).map((value) => ({ value })))));
}

function drawBars({ first, last }) {
  parts.strategies.replaceChildren(bars(Object.keys(last.strategies).map((k) => [k, grew(first, last, 'strategies', k)]), 'recovered', 'No request needed recovery.', parts.pick));
  const classes = {};
  for (const [upstream, list] of Object.entries(last.attempts)) {
    for (const [c, n] of Object.entries(list)) {
      if (c !== 'ok' && c !== 'canceled') classes[c] = (classes[c] || 0) + n - (first.attempts[upstream]?.[c] || 0);
    }
  }
  parts.classes.replaceChildren(bars(Object.entries(classes), 'failed', 'No attempt failed.', parts.pick));
}

export const outcomeNames = { ok: 'unchanged', fallback: 'fallback', running: 'running', recovered: 'recovered', failed: 'failed', rejected: 'rejected', canceled: 'client left' };

// did is what was done for a request, shortly.
export function did(r) {
  if (r.done?.recovery) return r.done.recovery;
  const done = [...new Set(r.events.map((e) => e.strategy).filter(Boolean))];
  return done.length ? done.join(', ') : [...new Set(r.events.filter((e) => e.event !== 'request_done').map((e) => words(e.event)))].join(', ');
}

const why = (r) => [...new Set([...(r.done?.attempts || []).map((a) => a.class), ...r.events.map((e) => e.class), ...r.events.map((e) => e.category)].filter(Boolean))];

const columns = [
  { name: 'Time', cell: (r) => clock(r.begun), style: 'tight' },
  { name: 'Outcome', cell: (r) => chip(outcome(r), outcomeNames[outcome(r)]), style: 'tight' },
  { name: 'Model', cell: (r) => r.model || '–', style: 'name' },
  { name: 'Why', cell: (r) => why(r).slice(0, 3).map((c) => chip('class', words(c))) },
  { name: 'Done', cell: (r) => did(r), style: 'name' },
  { name: 'Answered by', cell: (r) => r.done?.target || '–', style: 'name' },
  { name: 'Attempts', cell: (r) => r.done?.attempt ?? '', right: true },
  { name: 'Took', cell: (r) => duration(r.done?.duration_ms), right: true, style: 'tight' },
];

function drawLog() {
  const all = requests();
  const matching = all.filter((r) => !filter || JSON.stringify(r.events).toLowerCase().includes(filter));
  const kinds = Object.groupBy(matching, outcome);
  for (const tab of parts.tabs) {
    const n = tab.value ? kinds[tab.value]?.length || 0 : matching.length;
    tab.hidden = !n && tab.value !== wanted;
    tab.ariaPressed = String(tab.value === wanted);
    tab.textContent = (outcomeNames[tab.value] || 'all') + ' ' + count(n);
  }
  const listed = wanted ? kinds[wanted] || [] : matching;
  shown = listed.slice(0, longest);
  if (!shown.length) {
    parts.log.replaceChildren(h('p', { className: 'none' }, all.length ? 'No request matches.' : 'No request has needed recovery yet. Requests without problems are counted above and not listed.'));
    return;
  }
  parts.log.replaceChildren(table(columns, shown.map((r) => ({ value: r, props: {
    'data-key': r.id, tabIndex: 0, role: 'link', click: () => { location.hash = 'request/' + encodeURIComponent(r.id); } } })), { className: 'rows' }),
  listed.length > shown.length ? h('button', { type: 'button', className: 'more', click: () => { longest += 4 * perList; draw(); } }, 'Show more of ' + count(listed.length)) : '');
}

export function draw() {
  drawLog();
  const s = span();
  if (!s) return;
  drawUpstreams(s);
  drawTiles(s);
  drawCharts(s);
  drawBars(s);
}

export const rows = () => shown.map((r) => ({ time: r.begun, request: r.id, session: r.session, model: r.model, outcome: outcome(r), why: why(r).join(' '), done: did(r),
  target: r.done?.target, attempts: r.done?.attempt, status: r.done?.status, duration_ms: r.done?.duration_ms, ttfb_ms: r.done?.ttfb_ms }));

// Learned: what notes to agents brought, and what follows from it.
import { ask } from './data.js';
import { chip, count, figure, h, panel, share, table, words } from './dom.js';

const every = 5000;
let root = null;
let report = null;
let failed = '';
let asked = 0;

export function open(main) {
  root = h('div');
  main.append(h('div', { className: 'head' }, h('h1', {}, 'Learned')), root);
  asked = 0;
}

async function look() {
  try {
    report = await ask('learn');
    failed = '';
  } catch (e) {
    failed = e.message;
  }
  show();
}

const decisions = { chain: ['class', 'as the chain says', 'too little is known'], learned: ['ok', 'the most promising first', ''], observe: ['warn', 'no notes', 'none does better than no note'] };

const percent = (x) => (100 * x).toFixed(0);

// range is a rate as believed, with its 95 % interval as a bar, and a line where it is without a note.
const range = (rate, [low, high], without) => h('span', { className: 'range' }, h('span', { className: 'track', 'aria-hidden': 'true' },
  without === undefined ? null : h('u', { style: { left: 100 * without + '%' } }),
  h('i', { style: { left: 100 * low + '%', width: 'max(2px, ' + 100 * (high - low) + '%)' } }), h('em', { style: { left: 100 * rate + '%' } })),
h('b', {}, percent(rate) + ' %'), h('span', { className: 'note' }, percent(low) + ' to ' + percent(high)));

const signed = (x) => (x > 0 ? '+' : x < 0 ? '−' : '') + percent(Math.abs(x));

function cell(c) {
  const [kind, text, title] = decisions[c.decision] || ['class', c.decision];
  const without = c.arms.find((a) => !a.strategy)?.rate;
  return h('section', { className: 'panel' },
    h('div', { className: 'head' }, h('h2', { className: 'name' }, words(c.chain) + (c.model ? ', ' + c.model : '')), chip(kind, text, title),
      h('span', { className: 'note' }, 'a note changes the success rate by ', figure('net-' + c.chain, signed(c.net), { className: 'strong' }), ' points (', signed(c.net_interval[0]), ' to ', signed(c.net_interval[1]), ')')),
    table([
      { name: 'Proposed first', cell: (a) => (a.strategy ? words(a.strategy) : 'no note'), style: 'name' },
      { name: 'Seen', cell: (a) => figure('seen-' + c.chain + '-' + a.strategy, count(a.observations)), right: true, style: 'tight' },
      { name: 'Estimated success', cell: (a) => !a.observations ? '–' : range(a.rate, a.interval, a.strategy ? without : undefined) },
    ], c.arms, { className: 'arms' }));
}

function show() {
  if (!root.isConnected) return;
  if (!report) {
    root.replaceChildren(h('p', { className: 'none' }, failed || 'Looking …'));
    return;
  }
  const fact = (name, title, value) => h('div', {}, h('dt', {}, title), h('dd', {}, figure(name, value)));
  root.replaceChildren(
    h('dl', { className: 'facts' }, fact('mode', 'Mode', report.mode), fact('observations', 'Known outcomes', count(report.observations)), fact('open', 'Open outcomes', count(report.open)),
      fact('refused', 'Rejected entries', count(report.refused)), fact('lost', 'Lost outcomes', count(report.lost))),
    ...(report.cells.length ? report.cells.map(cell) : [h('section', { className: 'panel' }, h('p', { className: 'none' }, report.mode === 'off' ? 'Learning is off: learn.outcomes.' : 'No outcome of a note is known yet.'))]),
    report.patterns.length ? panel('Best strategy by tool message', table([
      { name: 'Message', cell: (p) => p.template, style: 'name' },
      { name: 'Chain', cell: (p) => words(p.chain) },
      { name: 'Best', cell: (p) => words(p.strategy) },
      { name: 'Seen', cell: (p) => count(p.observations), right: true },
      { name: 'Success', cell: (p) => share(p.rate, 1), right: true },
    ], report.patterns)) : '');
}

export function draw() {
  if (Date.now() - asked >= every) {
    asked = Date.now();
    look();
  }
}

export const rows = () => (report?.cells || []).flatMap((c) => c.arms.map((a) => ({ chain: c.chain, model: c.model, decision: c.decision, strategy: a.strategy || 'none', observations: a.observations,
  rate: a.rate, low: a.interval[0], high: a.interval[1], net: c.net })));

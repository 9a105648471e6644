// The frame of the page: which view is shown, keys, theme, export.
import { data, onChange, start, want } from './data.js';
import * as learned from './learned.js';
import * as now from './now.js';
import * as request from './request.js';
import * as sessions from './sessions.js';
import * as targets from './targets.js';

const views = { now, request, sessions, targets, learned };
const main = document.getElementById('view');
let current = null; // what is shown: view/argument
let view = views.now;

// where reads the address: #view/argument.
function where() {
  const [name, ...rest] = location.hash.slice(1).split('/');
  return { name: views[name] ? name : 'now', argument: decodeURIComponent(rest.join('/')) };
}

function show() {
  const { name, argument } = where();
  const place = name + '/' + argument;
  if (current !== place) {
    main.replaceChildren();
    view = views[name];
    view.open(main, argument);
    want(view.lists || []);
    current = place;
    document.title = [argument, name[0].toUpperCase() + name.slice(1), 'Rebound'].filter(Boolean).join(' · ');
    scrollTo(0, 0);
  }
  for (const a of document.querySelectorAll('nav a')) {
    if (a.dataset.view === name || (a.dataset.view === 'now' && name === 'request')) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  draw();
}

function draw() {
  const marked = getSelection();
  if (!marked.isCollapsed && main.contains(marked.anchorNode)) return; // somebody copies something
  const focused = document.activeElement?.dataset?.key;
  view.draw();
  if (focused) main.querySelector('[data-key="' + CSS.escape(focused) + '"]')?.focus({ preventScroll: true });
  const waiting = data.approvals.filter((a) => a.state === 'waiting').length;
  document.querySelector('nav a[data-view=sessions]').dataset.waiting = waiting || '';
  const state = document.getElementById('state');
  state.className = 'state ' + (data.online ? 'on' : 'off');
  const lost = data.dropped ? ', ' + data.dropped + ' events lost' : '';
  state.lastChild.textContent = (data.online ? 'live' : 'not connected') + lost;
  state.title = data.meta ? 'version ' + data.meta.version + ', replica ' + data.meta.replica : '';
}

function move(step) {
  const rows = [...main.querySelectorAll('tbody [data-key]')];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))].focus();
}

document.addEventListener('keydown', (e) => {
  const typing = e.target.matches('input, select, textarea');
  if (e.ctrlKey || e.metaKey || e.altKey || (typing && e.key !== 'Escape')) return;
  const act = {
    1: () => { location.hash = 'now'; }, 2: () => { location.hash = 'sessions'; }, 3: () => { location.hash = 'targets'; }, 4: () => { location.hash = 'learned'; },
    j: () => move(1), k: () => move(-1), t: theme, '?': help,
    '/': () => main.querySelector('input')?.focus(),
    Escape: () => { if (typing) e.target.blur(); else if (view === request) history.back(); },
    Enter: () => { if (e.target.matches('tr[data-key]')) e.target.click(); },
  }[e.key];
  if (!act || (e.key === 'Enter' && !e.target.matches('tr[data-key]'))) return;
  if (e.key !== 'Escape') e.preventDefault();
  act();
});

function theme() {
  const dark = getComputedStyle(document.documentElement).getPropertyValue('--dark').trim() === '1';
  const next = dark ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  localStorage.setItem('theme', next);
  current = null; // charts have their colours from the theme
  show();
}

const help = () => document.getElementById('keys').showModal();

function save(name, type, text) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

const stamp = () => 'rebound-' + where().name + '-' + new Date().toISOString().slice(0, 19).replaceAll(':', '');

// cell is one field of CSV. What a spreadsheet would take for a formula is made text.
function cell(value) {
  let text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
  if (/^[=+\-@\t\r]/.test(text) && typeof value !== 'number') text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

export function csv(rows) {
  const fields = [...new Set(rows.flatMap((r) => Object.keys(r)))];
  return [fields, ...rows.map((r) => fields.map((f) => r[f]))].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

document.getElementById('export-json').onclick = () => save(stamp() + '.json', 'application/json', JSON.stringify((view.all || view.rows)(), null, 2));
document.getElementById('export-csv').onclick = () => save(stamp() + '.csv', 'text/csv', csv(view.rows()));
document.getElementById('theme').onclick = theme;
document.getElementById('help').onclick = help;

const chosen = localStorage.getItem('theme');
if (chosen) document.documentElement.dataset.theme = chosen;
addEventListener('hashchange', show);
onChange(draw);
start();
show();

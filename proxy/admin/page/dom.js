// Elements and figures. Text of others only ever becomes a text node: nothing here
// or elsewhere in the page parses HTML.

// h makes an element. Properties that begin with "data-" or "aria-" are attributes,
// functions are listeners, the others are set as they are.
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') el.addEventListener(name, value);
    else if (name === 'style') Object.assign(el.style, value);
    else if (/^(data-|aria-|role$|href$|title$|type$|colspan$|scope$)/.test(name)) el.setAttribute(name, value);
    else el[name] = value;
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

// figure is a value that is shown, under a name by which it can be found.
export const figure = (name, value, props) => h('span', { 'data-figure': name, ...props }, String(value));

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const count = (n) => (Math.abs(n) >= 100000 ? short.format(n) : whole.format(n));
export const brief = (n) => short.format(n);
export const many = (n, one) => count(n) + ' ' + one + (n === 1 ? '' : 's');
export const rate = (n) => (n >= 100 ? whole.format(n) : tenth.format(n));
export const share = (n, of) => (of > 0 ? tenth.format((100 * n) / of) + ' %' : '–');

export function duration(ms) {
  if (ms === undefined || ms === null) return '–';
  if (ms < 1000) return whole.format(ms) + ' ms';
  if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 2 : 1) + ' s';
  const [s, min] = [Math.round(ms / 1000), Math.round(ms / 60000)];
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s % 60) + ' s';
  if (min < 2880) return Math.floor(min / 60) + ' h ' + (min % 60) + ' min';
  return Math.floor(min / 1440) + ' d ' + Math.floor((min % 1440) / 60) + ' h';
}

// age is a duration in whole seconds.
export const age = (ms) => (ms < 60000 ? Math.max(0, Math.floor(ms / 1000)) + ' s' : duration(ms));

// clock is a time of day in the browser's zone, with the date where it is not today's.
export function clock(time) {
  const t = new Date(time);
  const day = t.toDateString() === new Date().toDateString() ? '' : t.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) + ' ';
  return day + t.toLocaleTimeString('en-GB');
}

// words makes a name readable: error_recovery_attempt, stream_cut.
export const words = (name) => String(name).replaceAll('_', ' ');

export const chip = (kind, text, title) => h('span', { className: 'chip ' + kind, title }, text);

// table is a table of rows; a column has a name and a cell.
export function table(columns, rows, props) {
  return h('div', { className: 'scroll' }, h('table', props || {},
    h('thead', {}, h('tr', {}, columns.map((c) => h('th', { scope: 'col', className: c.right ? 'right' : '' }, c.name)))),
    h('tbody', {}, rows.map((row) => h('tr', { ...(row.props || {}) },
      columns.map((c) => h('td', { 'data-label': c.name || null, className: (c.right ? 'right ' : '') + (c.style || '') }, c.cell(row.value ?? row))))))));
}

export const panel = (title, ...children) => h('section', { className: 'panel' }, h('h2', {}, title), ...children);

const longest = 7; // bars

// bars shows how often what happened, most first; pick is called with the name of one.
export function bars(entries, kind, empty, pick) {
  const list = entries.filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  if (!list.length) return h('p', { className: 'none' }, empty);
  const most = list[0][1];
  const rest = list.slice(longest);
  return h('ul', { className: 'bars' }, list.slice(0, longest).map(([name, n]) => h('li', {},
    h('button', { type: 'button', className: 'name', title: 'Requests with ' + words(name), 'data-key': 'bar-' + name, click: () => pick(name) }, words(name)),
    h('span', { className: 'track' }, h('i', { className: kind, style: { width: Math.max(1, (100 * n) / most) + '%' } })),
    figure('bar-' + name, count(n), { className: 'n' }))),
  rest.length ? h('li', { className: 'rest', title: rest.map(([name]) => words(name)).join(', ') }, h('span', {}, many(rest.length, 'other kind')), h('span'), h('span', { className: 'n' }, count(rest.reduce((sum, [, n]) => sum + n, 0)))) : null);
}

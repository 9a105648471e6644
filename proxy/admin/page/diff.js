// What was changed between two requests: field by field, element by element where a
// field is a list, line by line and word by word within one. It knows JSON and no names
// of fields.
import { count, h } from './dom.js';

const maxCells = 4e6; // of one comparison; beyond, all of it counts as replaced
const context = 3; // lines around a change
const folding = 8; // lines of a change that are shown at first, if there are many more
const maxLine = 1500; // characters of a line that are shown

// compare lists how b comes out of a: runs of [kind, elements of a, elements of b].
export function compare(a, b) {
  let from = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from++;
  let [endA, endB] = [a.length, b.length];
  while (endA > from && endB > from && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const [n, m] = [endA - from, endB - from];
  const pairs = []; // of positions that stay, between what both begin and end with
  if (n && m && n * m <= maxCells) {
    const longest = new Uint16Array((n + 1) * (m + 1));
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        longest[i * (m + 1) + j] = a[from + i] === b[from + j] ? longest[(i + 1) * (m + 1) + j + 1] + 1 : Math.max(longest[(i + 1) * (m + 1) + j], longest[i * (m + 1) + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[from + i] === b[from + j]) pairs.push([from + i++, from + j++]);
      else if (longest[(i + 1) * (m + 1) + j] >= longest[i * (m + 1) + j + 1]) i++;
      else j++;
    }
  }
  const runs = [];
  const add = (kind, i, i2, j, j2) => {
    if (i === i2 && j === j2) return;
    const last = runs.at(-1);
    if (last?.kind === kind) Object.assign(last, { toA: i2, toB: j2 });
    else runs.push({ kind, fromA: i, toA: i2, fromB: j, toB: j2 });
  };
  let [i, j] = [0, 0];
  add('same', 0, from, 0, from);
  [i, j] = [from, from];
  for (const [x, y] of pairs) {
    add('changed', i, x, j, y);
    add('same', x, x + 1, y, y + 1);
    [i, j] = [x + 1, y + 1];
  }
  add('changed', i, endA, j, endB);
  add('same', endA, a.length, endB, b.length);
  return runs;
}

// lines is a value for people to read.
function lines(value, indent = '') {
  if (typeof value === 'string') return value.split('\n').map((l) => indent + l);
  if (value === null || typeof value !== 'object') return [indent + String(value)];
  const list = Array.isArray(value);
  const out = [];
  for (const [k, v] of Object.entries(value)) {
    const inner = lines(v, indent + '  ');
    const head = indent + (list ? '-' : k + ':');
    const short = inner.length === 1 && (typeof v !== 'object' || v === null);
    if (short) out.push(head + ' ' + inner[0].trimStart());
    else if (list && inner.length) out.push(head + ' ' + inner[0].slice(indent.length + 2), ...inner.slice(1));
    else out.push(head, ...inner);
  }
  return out.length ? out : [indent + (list ? '[]' : '{}')];
}

const cut = (text) => (text.length > maxLine ? text.slice(0, maxLine) + ' … ' + count(text.length - maxLine) + ' more characters' : text);
const line = (kind, ...text) => h('span', { className: 'line ' + kind }, text, '\n');

// within marks what is different in two lines; null where they have too little in common.
function within(a, b) {
  if (a.length > maxLine || b.length > maxLine) return null;
  const [x, y] = [a.match(/\s+|\w+|[^\s\w]/g) || [], b.match(/\s+|\w+|[^\s\w]/g) || []];
  const runs = compare(x, y);
  const same = runs.filter((r) => r.kind === 'same').reduce((n, r) => n + x.slice(r.fromA, r.toA).join('').trim().length, 0);
  if (same < Math.max(a.trim().length, b.trim().length) / 3) return null;
  const side = (words, from, to) => runs.map((r) => {
    const text = words.slice(r[from], r[to]).join('');
    return r.kind === 'same' || !text ? text : h('mark', {}, text);
  });
  return [side(x, 'fromA', 'toA'), side(y, 'fromB', 'toB')];
}

// short folds what is long.
const short = (all) => (all.length <= 2 * folding ? all : [...all.slice(0, folding), h('details', {}, h('summary', {}, count(all.length - folding) + ' more lines'), all.slice(folding))]);

// text shows how one value became another.
function text(before, after) {
  const [a, b] = [before === undefined ? [] : lines(before), after === undefined ? [] : lines(after)];
  const out = [];
  const runs = compare(a, b);
  runs.forEach((r, at) => {
    if (r.kind === 'same') {
      const all = a.slice(r.fromA, r.toA);
      const [head, tail] = [at ? context : 0, at < runs.length - 1 ? context : 0];
      if (runs.length === 1 || all.length <= head + tail + 1) out.push(...all.map((l) => line('same', cut(l))));
      else out.push(...all.slice(0, head).map((l) => line('same', cut(l))), line('gap', '… ' + count(all.length - head - tail) + ' lines as they were'), ...(tail ? all.slice(-tail) : []).map((l) => line('same', cut(l))));
      return;
    }
    const [gone, come] = [a.slice(r.fromA, r.toA), b.slice(r.fromB, r.toB)];
    const words = gone.map((l, i) => (i < come.length && gone.length === come.length ? within(l, come[i]) : null));
    out.push(...short(gone.map((l, i) => line('gone', words[i]?.[0] || cut(l)))), ...short(come.map((l, i) => line('come', words[i]?.[1] || cut(l)))));
  });
  return h('pre', { className: 'diff' }, out);
}

// alike tells whether two elements of a list are one that was changed: at least half
// of what they have is equal.
function alike(a, b) {
  const keys = [...new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})])];
  return keys.length > 0 && 2 * keys.filter((k) => JSON.stringify(a[k]) === JSON.stringify(b[k])).length >= keys.length;
}

// title is an element's number and what it says of itself first.
const title = (value, number) => number + 1 + ' ' + Object.values(value ?? {}).filter((v) => typeof v === 'string' && v.length <= 40).slice(0, 2).join(' ');

const item = (kind, name, body) => h('div', { className: 'item ' + kind }, h('div', { className: 'label' }, h('b', {}, name), ' ', h('span', { className: 'chip ' + { removed: 'failed', added: 'ok' }[kind] }, kind)), body);

// folded is what stays as it was, and is shown when somebody asks.
function folded(values, from, what) {
  const d = h('details', { toggle: () => { if (d.open && d.children.length === 1) d.append(...values.map((v, i) => h('div', { className: 'item' }, h('div', { className: 'label' }, h('b', {}, title(v, from + i))), text(v, v)))); } },
    h('summary', {}, count(values.length) + ' ' + what));
  return d;
}

function list(before, after) {
  const [a, b] = [before.map((v) => JSON.stringify(v)), after.map((v) => JSON.stringify(v))];
  const out = [];
  for (const r of compare(a, b)) {
    if (r.kind === 'same') {
      out.push(folded(before.slice(r.fromA, r.toA), r.fromA, 'as they were'));
      continue;
    }
    let j = r.fromB;
    const come = (to) => { for (; j < to; j++) out.push(item('added', title(after[j], j), text(undefined, after[j]))); };
    for (let i = r.fromA; i < r.toA; i++) {
      let k = j;
      while (k < Math.min(r.toB, j + 50) && !alike(before[i], after[k])) k++;
      if (k < Math.min(r.toB, j + 50)) {
        come(k);
        out.push(item('changed', title(before[i], i), text(before[i], after[j++])));
      } else out.push(item('removed', title(before[i], i), text(before[i], undefined)));
    }
    come(r.toB);
  }
  return out;
}

const isList = (v) => Array.isArray(v) && v.length > 0 && v.every((e) => e !== null && typeof e === 'object');

// show is the difference of two bodies.
export function show(before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const same = names.filter((k) => JSON.stringify(before[k]) === JSON.stringify(after[k]));
  const out = names.filter((k) => !same.includes(k)).map((k) => h('section', { className: 'part' }, h('h3', {}, k),
    isList(before[k]) && isList(after[k]) ? list(before[k], after[k]) : text(before[k], after[k])));
  if (!out.length) out.push(h('p', { className: 'none' }, 'Only the formatting differs.'));
  if (same.length) out.push(h('p', { className: 'none' }, 'As it was: ' + same.join(', ')));
  return h('div', {}, out);
}

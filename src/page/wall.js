// SPDX-License-Identifier: Apache-2.0
// The card wall. Only the rows in view are elements, and a card is one element: its holders are the
// stops of a gradient, its label is drawn by the style sheet. So 40,000 cards need a few hundred elements.
import { $, el, gpus, memory, plural, setText, short } from './dom.js';
import { colour, model } from './model.js';

const ELEMENTS_MAX = 1150; // of the wall; the rest of the page has its own
const SPARE = 3;           // rows beyond the edges

const filter = { text: '', ns: '', model: '', dialect: '', order: 'name', trouble: false };
let shown = [];  // nodes that the filter lets through, in order
let lines = [];  // {top, height, first, n}: nodes side by side
let layout = {}; // sizes in pixels, columns
let open = () => {};
const rows = new Map(); // node name -> {row, stamp}
let current = { node: null, card: 0 }; // where the keyboard is

// --- one card ----------------------------------------------------------------------------------

const pc = (value) => `${(value * 100).toFixed(2)}%`;

// The bar of a card or pool: holders in their colours, then what is free, hatched where it is useless.
export function paint(box, segments, useless, slices, ns) {
  const stops = [];
  let at = 0;
  for (const { from, to, holder } of segments) {
    if (from > at) stops.push(`var(--free) ${pc(at)} ${pc(from)}`);
    const dim = ns && holder && holder.pod.namespace !== ns;
    const paintOf = !holder ? 'var(--unknown)' : dim ? 'var(--dim)' : colour(holder.pod.namespace);
    const edge = to >= 0.999 ? pc(to) : `calc(${pc(to)} - 1px)`;
    stops.push(`${paintOf} ${pc(from)} ${edge}`);
    if (to < 0.999) stops.push(`var(--surface) ${edge} ${pc(to)}`);
    at = Math.max(at, to);
  }
  const usable = Math.max(1 - useless, at);
  if (usable > at) stops.push(`var(--free) ${pc(at)} ${pc(usable)}`);
  if (usable < 1) stops.push(`transparent ${pc(usable)} 100%`);
  const layers = [`linear-gradient(to right, ${stops.join(', ')})`];
  if (slices > 1) {
    const step = pc(1 / slices);
    layers.unshift(`repeating-linear-gradient(to right, transparent 0 calc(${step} - 1px), var(--tick) calc(${step} - 1px) ${step})`);
  }
  if (useless > 0.001) layers.push('var(--hatching)');
  box.style.backgroundImage = layers.join(', ');
}

const poolName = (resource) => resource.slice(resource.indexOf('/') + 1);

function cardLabel(card) {
  if (card.state === 'unhealthy') return '✕ unhealthy';
  if (card.state === 'closed') return '⊘ closed';
  const [total, unit] = memory(card.mib).split(' ');
  const used = unit === 'GiB' ? (card.usedMib / 1024).toFixed(1).replace(/\.0$/, '') : card.usedMib;
  return `${card.over ? '! ' : ''}${used}/${total} ${unit}`;
}

const who = (holder) => `${holder.pod.namespace}/${holder.pod.name}`;
const nameOf = (pod) => `${pod.namespace}/${pod.name}`.toLowerCase();

export function cardTitle(node, card) {
  const pods = card.holders.length ? card.holders.map(who).slice(0, 8).join(', ') : 'nobody';
  const state = card.state === 'open' ? '' : `, ${card.state}`;
  const useless = card.useless > 0.001 ? `, ${Math.round(card.useless * 100)} % of it free but of no use to the pods that are expected` : '';
  return `${node.name}, card ${card.index}${state}: ${memory(card.usedMib)} of ${memory(card.mib)} handed out to ${pods}${useless}`;
}

export function poolTitle(node, pool) {
  const pods = pool.holders.length ? pool.holders.map(who).slice(0, 8).join(', ') : 'nobody';
  return `${node.name}, ${pool.resource}: ${pool.used} of ${pool.devices} devices${pool.shared ? ', time-sliced' : ''}, to ${pods}; which one a pod has, only the node knows`;
}

export function poolSegments(pool) {
  let at = 0;
  return pool.holders.map((holder) => {
    const from = at;
    at = Math.min(1, at + holder.devices / Math.max(pool.devices, 1));
    return { from, to: at, holder };
  });
}

// How many columns a pool of whole GPUs takes: as many as cards would.
function poolSpan(pool) {
  return Math.max(1, Math.min(Math.round((pool.devices * pool.size) / 1000), layout.per));
}

// --- one node ----------------------------------------------------------------------------------

const boxesOf = (node) => [...node.cards, ...node.pools];

function usedColumns(node) {
  let line = 1;
  let at = 0;
  for (const box of boxesOf(node)) {
    const width = box.resource ? poolSpan(box) : 1;
    if (at + width > layout.per) {
      line += 1;
      at = 0;
    }
    at += width;
  }
  return line;
}

function flags(node) {
  const all = [];
  if (!node.present) all.push('gone');
  if (node.cordoned) all.push('cordoned');
  if (node.paused) all.push('plugin away');
  if (node.leftOut) all.push('left out');
  if (node.lost.length) all.push(`${node.lost.length} on no known card`);
  if (node.pods.some((pod) => pod.waiting)) all.push('waits for its plugin');
  return all;
}

function buildCell(node, box, index, ns) {
  const isPool = Boolean(box.resource);
  const cell = el('div', {
    role: 'gridcell', class: 'card', tabindex: -1, 'data-i': index,
    'aria-label': isPool ? poolTitle(node, box) : cardTitle(node, box),
    'data-label': isPool ? `${box.used}/${box.devices} ${short(poolName(box.resource), 24)}${box.shared ? ', time-sliced' : ''}` : cardLabel(box),
  });
  cell.title = cell.getAttribute('aria-label');
  if (isPool) {
    const span = poolSpan(box);
    if (span > 1) cell.style.gridColumn = `span ${span}`;
    cell.classList.add('pool');
    paint(cell, poolSegments(box), 0, box.devices <= 64 ? box.devices : 0, ns);
  } else {
    if (box.state !== 'open') cell.classList.add(box.state);
    if (box.over) cell.classList.add('over');
    paint(cell, box.segments, box.useless, box.slices, ns);
  }
  if (filter.text && box.holders.some(({ pod }) => nameOf(pod).includes(filter.text))) cell.classList.add('hit');
  return cell;
}

function buildRow(node, at) {
  const marks = flags(node);
  const what = [...node.models.map((name) => short(name.replace(/^NVIDIA[ -]/, ''), 24)), node.dialects.join(' + ') || 'no dialect'].join(' · ');
  const head = el('div', { role: 'rowheader', class: 'node', tabindex: -1, 'data-i': -1, title: node.name },
    el('span', { class: 'name' }, node.name),
    el('span', { class: marks.length ? 'meta bad' : 'meta', title: what }, marks.length ? marks.join(' · ') : what));
  const row = el('div', { role: 'row', class: node.service ? 'row' : 'row off', 'data-node': node.name, 'aria-rowindex': at + 1 },
    head, boxesOf(node).map((box, index) => buildCell(node, box, index, filter.ns)));
  if (!layout.stacked) head.style.gridRow = `1 / span ${usedColumns(node)}`;
  return row;
}

// --- layout and scrolling ----------------------------------------------------------------------

function measure() {
  const width = $('scroll').clientWidth - 20;
  const large = window.innerWidth >= 2200;
  const most = Math.min(Math.max(1, ...shown.map((node) => node.cards.length + node.pools.length)), 8);
  const stacked = width < 620;
  const name = stacked ? 0 : large ? 230 : Math.min(190, Math.max(130, width * 0.18));
  const least = large ? 104 : 76;
  const gap = 4;
  let columns = stacked ? 1 : Math.max(1, Math.floor(width / (name + most * (least + gap) + 24)));
  columns = Math.min(columns, Math.max(1, shown.length));
  const inner = Math.floor((width - (columns - 1) * 24) / columns);
  const per = stacked ? Math.min(Math.max(most, 2), Math.max(2, Math.floor(width / 88))) : Math.max(1, Math.min(most, Math.floor((inner - name) / (least + gap))));
  const even = Math.ceil(most / Math.ceil(most / per)); // 4 and 4, not 7 and 1
  layout = { width, columns, inner, per: even, name, gap, stacked, card: large ? 52 : 40, head: stacked ? 24 : 0, pad: 8 };
  // The larger the screen, the farther away those who look at it: fewer and larger rows rather than more of them.
  for (let tries = 0; tries < 12 && estimate() > ELEMENTS_MAX; tries++) layout.card *= 1.15;
  layout.card = Math.round(layout.card);
}

function estimate() {
  const height = $('scroll').clientHeight;
  const perNode = Math.max(1, ...shown.slice(0, 200).map((node) => node.cards.length + node.pools.length));
  const line = layout.head + layout.pad + Math.ceil(perNode / layout.per) * (layout.card + layout.gap);
  return Math.ceil(height / line + 2 * SPARE) * layout.columns * (perNode + 4);
}

const nodeHeight = (node) => layout.head + layout.pad + Math.max(1, usedColumns(node)) * (layout.card + layout.gap);

function arrange() {
  lines = [];
  let top = 0;
  for (let first = 0; first < shown.length; first += layout.columns) {
    const n = Math.min(layout.columns, shown.length - first);
    let height = 0;
    for (let i = first; i < first + n; i++) height = Math.max(height, nodeHeight(shown[i]));
    lines.push({ top, height, first, n });
    top += height;
  }
  const grid = $('grid');
  grid.style.height = `${top}px`;
  grid.style.setProperty('--per', layout.per);
  grid.style.setProperty('--name', `${layout.name}px`);
  grid.style.setProperty('--card', `${layout.card}px`);
  grid.classList.toggle('stacked', layout.stacked);
  grid.setAttribute('aria-rowcount', shown.length);
}

function lineAt(y) {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lines[middle].top <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

function place(row, line, column) {
  row.style.transform = `translate(${column * (layout.inner + 24)}px, ${line.top}px)`;
  row.style.width = `${layout.inner}px`;
}

function render() {
  const scroll = $('scroll');
  const wanted = new Set();
  const grid = $('grid');
  const focused = grid.contains(document.activeElement) ? document.activeElement : null;
  if (lines.length) {
    const from = Math.max(0, lineAt(scroll.scrollTop) - SPARE);
    const to = Math.min(lines.length - 1, lineAt(scroll.scrollTop + scroll.clientHeight) + SPARE);
    for (let at = from; at <= to; at++) {
      const line = lines[at];
      for (let i = 0; i < line.n; i++) {
        const node = shown[line.first + i];
        wanted.add(node.name);
        let kept = rows.get(node.name);
        if (!kept || kept.stamp !== node.stamp) {
          const row = buildRow(node, line.first + i);
          if (kept?.row.isConnected) kept.row.replaceWith(row);
          else grid.append(row);
          kept = { row, stamp: node.stamp };
          rows.set(node.name, kept);
        }
        kept.row.setAttribute('aria-rowindex', line.first + i + 1);
        place(kept.row, line, i);
      }
    }
  }
  for (const [name, { row }] of rows) {
    if (wanted.has(name)) continue;
    row.remove();
    rows.delete(name);
  }
  mark();
  if (focused && !focused.isConnected) cellOf(current)?.focus({ preventScroll: true });
}

// --- filters -----------------------------------------------------------------------------------

const orders = {
  name: null,
  free: (a, b) => b.usable - a.usable,
  full: (a, b) => a.usable - b.usable,
  useless: (a, b) => b.useless - a.useless,
};

function passes(node) {
  return (!filter.trouble || node.trouble) && (!filter.ns || node.namespaces.has(filter.ns)) &&
    (!filter.model || node.models.includes(filter.model)) && (!filter.dialect || node.dialects.includes(filter.dialect)) &&
    (!filter.text || node.text.includes(filter.text));
}

function choices(select, all, names) {
  const value = select.value;
  const wanted = ['', ...names];
  if (select.options.length !== wanted.length || wanted.some((name, i) => select.options[i].value !== name)) {
    const at = new Map(names.map((name) => [name, name]));
    select.replaceChildren(...wanted.map((name) => {
      const option = el('option', null, name ? short(at.get(name), 40) : all);
      option.value = name;
      return option;
    }));
    select.value = wanted.includes(value) ? value : '';
  }
}

const NAMESPACES_MAX = 60; // that one can choose from; the search finds the others

function drawLegend() {
  const largest = [...model.namespaces].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  choices($('f-ns'), 'Namespace', largest.slice(0, NAMESPACES_MAX).map(([name]) => name).sort());
  choices($('f-model'), 'Model', model.models.slice(0, 60));
  choices($('f-dialect'), 'Dialect', model.dialects);
  const chips = largest.slice(0, 10).map(([name, amount]) => {
    const dot = el('i', { 'aria-hidden': 'true' });
    dot.style.background = colour(name);
    return el('button', { type: 'button', class: 'chip', title: `${name}: ${gpus(amount)} GPUs`, 'aria-pressed': String(filter.ns === name), onclick: () => set('ns', filter.ns === name ? '' : name) },
      dot, el('span', null, name), ` ${gpus(amount)}`);
  });
  const rest = largest.length - chips.length;
  $('legend').replaceChildren(el('div', { class: 'chips' }, chips, rest > 0 ? el('span', { class: 'key' }, `+ ${rest} more`) : null),
    el('span', { class: 'key' }, el('i', { class: 'k-hatch', 'aria-hidden': 'true' }), 'free but useless'),
    el('span', { class: 'key' }, el('i', { class: 'k-broken', 'aria-hidden': 'true' }), 'out of service'));
}

function apply(reset) {
  shown = model.nodes.filter(passes);
  if (orders[filter.order]) shown = shown.slice().sort(orders[filter.order]);
  setText($('f-count'), shown.length === model.nodes.length ? plural(shown.length, 'node') : `${shown.length} of ${plural(model.nodes.length, 'node')}`);
  const empty = $('empty');
  empty.hidden = shown.length > 0;
  setText(empty, model.nodes.length ? 'No node is like that.' : model.read ? 'No node shares GPUs yet.' : 'reading…');
  if (reset) {
    rows.forEach(({ row }) => row.remove());
    rows.clear();
    $('scroll').scrollTop = 0;
  }
  measure();
  arrange();
  render();
}

function set(key, value) {
  filter[key] = value;
  $(`f-${key}`)[key === 'trouble' ? 'checked' : 'value'] = value;
  drawLegend();
  apply(true);
}

// --- keyboard ----------------------------------------------------------------------------------

const cellOf = ({ node, card }) => rows.get(node)?.row.querySelector(`[data-i="${card}"]`);

// One cell of the grid can be reached with Tab: the one where the keyboard was last.
function mark() {
  const grid = $('grid');
  grid.querySelectorAll('[tabindex="0"]').forEach((cell) => { cell.tabIndex = -1; });
  const cell = cellOf(current) ?? grid.querySelector('[data-i]');
  if (cell) cell.tabIndex = 0;
}

function go(at, card) {
  const node = shown[Math.max(0, Math.min(at, shown.length - 1))];
  if (!node) return;
  current = { node: node.name, card: Math.max(-1, Math.min(card, boxesOf(node).length - 1)) };
  const line = lines[Math.floor(shown.indexOf(node) / layout.columns)];
  const scroll = $('scroll');
  if (line.top < scroll.scrollTop) scroll.scrollTop = line.top;
  if (line.top + line.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = line.top + line.height - scroll.clientHeight;
  render();
  cellOf(current)?.focus({ preventScroll: true });
}

function onKey(event) {
  const at = shown.findIndex((node) => node.name === current.node);
  const page = Math.max(1, Math.floor($('scroll').clientHeight / (lines[0]?.height || 50))) * layout.columns;
  const moves = {
    ArrowLeft: [at, current.card - 1], ArrowRight: [at, current.card + 1],
    ArrowUp: [at - layout.columns, current.card], ArrowDown: [at + layout.columns, current.card],
    PageUp: [at - page, current.card], PageDown: [at + page, current.card],
    Home: [event.ctrlKey ? 0 : at, -1], End: [event.ctrlKey ? shown.length - 1 : at, 1e9],
  };
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    if (at >= 0) open(shown[at], boxesOf(shown[at])[current.card] ?? null);
  } else if (moves[event.key] && at >= 0) {
    event.preventDefault();
    go(...moves[event.key]);
  }
}

function cellFrom(event) {
  const cell = event.target.closest('[data-i]');
  const node = cell && model.nodes.find((each) => each.name === cell.parentElement.dataset.node);
  if (node) current = { node: node.name, card: Number(cell.dataset.i) };
  return node;
}

export function focusWall() {
  cellOf(current)?.focus();
}

// Shows a node, whatever the filters say, and goes to it.
export function showNode(name) {
  if (!shown.some((node) => node.name === name)) {
    Object.assign(filter, { text: '', ns: '', model: '', dialect: '', trouble: false });
    for (const key of ['text', 'ns', 'model', 'dialect']) $(`f-${key}`).value = '';
    $('f-trouble').checked = false;
    apply(true);
  }
  const at = shown.findIndex((node) => node.name === name);
  if (at >= 0) go(at, 0);
  return at >= 0;
}

export function drawWall() {
  drawLegend();
  apply(false);
}

export function startWall(onOpen) {
  open = onOpen;
  const grid = $('grid');
  $('scroll').addEventListener('scroll', render, { passive: true });
  grid.addEventListener('keydown', onKey);
  grid.addEventListener('focusin', (event) => { if (cellFrom(event)) mark(); });
  grid.addEventListener('click', (event) => {
    const node = cellFrom(event);
    if (node) open(node, boxesOf(node)[current.card] ?? null);
  });
  $('filters').addEventListener('submit', (event) => event.preventDefault());
  $('f-text').addEventListener('input', () => { filter.text = $('f-text').value.trim().toLowerCase(); apply(true); });
  for (const key of ['ns', 'model', 'dialect', 'order']) $(`f-${key}`).addEventListener('change', () => set(key, $(`f-${key}`).value));
  $('f-trouble').addEventListener('change', () => set('trouble', $('f-trouble').checked));
  new ResizeObserver(() => {
    rows.forEach(({ row }) => row.remove());
    rows.clear();
    apply(false);
  }).observe($('scroll'));
}

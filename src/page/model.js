// SPDX-License-Identifier: Apache-2.0
// The cluster as the page knows it: nodes with what is drawn of them worked out, and their sums.
import { forget, get } from './api.js';

const COLOURS = 12; // --t0 … in style.css

export const model = {
  nodes: [],       // by name
  demandKnown: false,
  namespaces: new Map(), // name -> thousandths of a GPU that its pods hold
  models: [], dialects: [],
  sums: null,
  read: false,     // all of it, once
};

const pieces = new Map(); // path -> nodes, of the wall

const colours = new Map(); // namespace -> number; kept as long as no two of the largest have the same

// The one that the fewest have.
function rarest() {
  const times = Array(COLOURS).fill(0);
  for (const number of colours.values()) times[number] += 1;
  return times.indexOf(Math.min(...times));
}

export function colour(namespace) {
  if (!colours.has(namespace)) colours.set(namespace, rarest());
  return `var(--t${colours.get(namespace)})`;
}

// The largest, as many as there are colours, have one each; names decide among equals. Of two that have the same
// the smaller one takes another.
function giveColours() {
  const all = [...model.namespaces].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
  const largest = all.slice(0, COLOURS);
  const free = new Set(Array(COLOURS).keys());
  const without = largest.filter((name) => !free.delete(colours.get(name)));
  for (const name of without) {
    const [number] = free;
    free.delete(number);
    colours.set(name, number);
  }
  all.forEach((name) => colour(name));
}

const part = (of, whole) => (whole > 0 ? of / whole : 0);

// What one holder has of a card, 0 to 1.
function fraction(card, holder) {
  return Math.max(part(holder.mib, card.mib), part(holder.core, card.core));
}

// Where on a card its holders are drawn: MIG instances in their places, others side by side.
function layOut(card, unplaced) {
  const segments = [];
  let at = 0;
  const sum = card.holders.reduce((all, holder) => all + fraction(card, holder), 0);
  const given = card.given / 1000;
  // Whoever tolerates nobody beside it has all of it, whatever it asked for; who has too much is squeezed in.
  const scale = sum > 0 && (sum > 1 || given > sum + unplaced + 0.01) ? Math.max(given - unplaced, 0.05) / sum : 1;
  for (const holder of card.holders) {
    if (card.slices > 0 && holder.start !== null) {
      segments.push({ from: holder.start / card.slices, to: (holder.start + holder.slices) / card.slices, holder });
      continue;
    }
    const width = Math.max(fraction(card, holder) * scale, 0.02);
    segments.push({ from: at, to: Math.min(at + width, 1), holder });
    at = Math.min(at + width, 1);
  }
  if (unplaced > 0 && at < 1) segments.push({ from: at, to: Math.min(at + unplaced, 1), holder: null });
  return segments.sort((a, b) => a.from - b.from);
}

function addHolders(node) {
  const cards = new Map(node.cards.map((card) => [card.index, card]));
  const pools = new Map(node.pools.map((pool) => [pool.resource, pool]));
  for (const box of [...node.cards, ...node.pools]) box.holders = [];
  node.lost = []; // pods whose card nobody knows
  node.lostMib = 0;
  for (const pod of node.pods) {
    const found = new Map(); // box -> holder
    for (const share of pod.shares) {
      const box = share.resource ? pools.get(share.resource) : cards.get(share.card);
      if (!box) {
        if (!node.lost.includes(pod)) node.lost.push(pod);
        node.lostMib += share.mib ?? 0;
        continue;
      }
      let holder = found.get(box);
      if (!holder || share.start !== undefined) {
        holder = { pod, mib: 0, core: 0, devices: 0, start: share.start ?? null, slices: share.slices ?? 0 };
        box.holders.push(holder);
        found.set(box, holder);
      }
      holder.mib += share.mib ?? 0;
      holder.core += share.core ?? 0;
      holder.devices += share.devices ?? 0;
    }
  }
}

// What is useless of a node's free GPU lies on its fullest cards: those have room for the fewest pods.
// Empty ones are alike, and have the rest in equal parts.
function spreadFragmented(node) {
  let left = node.fragmented / 1000;
  const open = node.cards.filter((card) => card.state === 'open' && card.given < 1000);
  const empty = open.filter((card) => card.given === 0);
  for (const card of open.filter((each) => each.given > 0).sort((a, b) => b.given - a.given)) {
    card.useless = Math.min(left, 1 - card.given / 1000);
    left -= card.useless;
  }
  for (const card of empty) card.useless = Math.min(1, left / empty.length);
}

function prepare(node) {
  addHolders(node);
  node.size = node.given = node.broken = node.closed = 0;
  for (const card of node.cards) {
    card.useless = 0;
    node.size += 1000;
    node.given += card.given;
    node.broken += card.state === 'unhealthy' ? 1 : 0;
    node.closed += card.state === 'closed' ? 1 : 0;
    card.over = card.usedMib > card.mib;
    card.segments = layOut(card, part(node.lostMib, card.mib));
  }
  for (const pool of node.pools) {
    node.size += pool.devices * pool.size;
    node.given += Math.min(pool.used, pool.devices) * pool.size;
  }
  node.service = node.present && !node.cordoned && !node.paused && !node.leftOut;
  const shut = node.cards.filter((card) => card.state !== 'open').reduce((sum, card) => sum + 1000 - card.given, 0);
  node.free = node.size - node.given;
  node.out = node.service ? shut : node.free;
  node.useless = node.service ? Math.min(node.fragmented, node.free - node.out) : 0;
  node.usable = node.free - node.out - node.useless;
  if (node.service) spreadFragmented(node);
  node.models = [...new Set([...node.cards, ...node.pools].map((box) => box.model).filter(Boolean))];
  node.namespaces = new Set(node.pods.map((pod) => pod.namespace));
  node.text = [node.name, ...node.models, ...node.dialects, ...node.pools.map((pool) => pool.resource),
    ...node.pods.map((pod) => `${pod.namespace}/${pod.name}`)].join('\n').toLowerCase();
  const over = node.cards.some((card) => card.over);
  node.trouble = !node.service || node.broken + node.closed > 0 || over || node.lost.length > 0 ||
    node.useless >= 500 || node.pods.some((pod) => pod.waiting);
  node.stamp = {}; // another one whenever the node has changed
}

function addUp() {
  const sums = { nodes: model.nodes.length, cordoned: 0, broken: 0, closed: 0, size: 0, given: 0, out: 0, useless: 0, usable: 0, pods: 0 };
  const models = new Set();
  const dialects = new Set();
  model.namespaces = new Map();
  for (const node of model.nodes) {
    sums.cordoned += node.cordoned ? 1 : 0;
    sums.pods += node.pods.length;
    for (const key of ['broken', 'closed', 'size', 'given', 'out', 'useless', 'usable']) sums[key] += node[key];
    node.models.forEach((name) => models.add(name));
    node.dialects.forEach((name) => dialects.add(name));
    for (const { namespace, gpuMillionths } of node.pods) model.namespaces.set(namespace, (model.namespaces.get(namespace) ?? 0) + gpuMillionths / 1000);
  }
  model.sums = sums;
  model.models = [...models].sort();
  model.dialects = [...dialects].sort();
  giveColours();
}

// Reads the wall piece by piece; `progress` is called after each while there is nothing older to show.
// True if anything has changed.
export async function readWall(progress) {
  const seen = [];
  let changed = false;
  let after = null;
  do {
    const path = `api/v1/wall${after === null ? '' : `?after=${encodeURIComponent(after)}`}`;
    const answer = await get(path);
    if (answer.changed) {
      answer.data.nodes.forEach(prepare);
      pieces.set(path, answer.data.nodes);
      model.demandKnown = answer.data.demandKnown;
      changed = true;
    }
    seen.push(path);
    after = answer.data.next;
    if (changed && after !== null && progress && model.nodes.length < seen.length * answer.data.nodes.length) {
      model.nodes = seen.flatMap((each) => pieces.get(each));
      addUp();
      progress();
    }
  } while (after !== null);
  const first = !model.read;
  model.read = true;
  const gone = [...pieces.keys()].filter((path) => !seen.includes(path));
  gone.forEach((path) => pieces.delete(path));
  forget(gone);
  if (changed || first || gone.length > 0) {
    model.nodes = seen.flatMap((path) => pieces.get(path));
    addUp();
    return true;
  }
  return false;
}

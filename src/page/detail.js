// SPDX-License-Identifier: Apache-2.0
// One card, one pool or one node: who has what of it, since when, beside whom.
import { get } from './api.js';
import { $, clock, el, gpus, memory, percent, plural, setText, since, words } from './dom.js';
import { colour, model } from './model.js';
import { cardTitle, focusWall, paint, poolSegments, poolTitle } from './wall.js';

const HOLDERS_MAX = 40; // shown of one card
let shown = null; // {node, key}: what the panel is about, by name

const keyOf = (box) => (box ? box.resource ?? box.index : null);

function fact(name, value, title) {
  return value === null || value === '' ? null : el('div', null, el('dt', null, name), el('dd', { title }, value));
}

// The explanation's sentence about a pod that has its card: its state, and its neighbours.
async function why(pod, target) {
  setText(target, 'asking…');
  try {
    const { data } = await get(`api/v1/explain?pod=${encodeURIComponent(`${pod.namespace}/${pod.name}`)}&nodes=0`);
    const beside = data.place?.neighbours?.length ? `; beside ${data.place.neighbours.join(', ')}` : '; beside nobody';
    setText(target, `${data.summary}${data.place?.state ? `. ${data.place.state}` : ''}${data.place ? beside : ''}`);
  } catch (error) {
    setText(target, error.message);
  }
}

function holderItem(node, holder, all) {
  const { pod } = holder;
  const dot = el('i', { class: 'dot', 'aria-hidden': 'true' });
  dot.style.background = colour(pod.namespace);
  const has = holder.boxes ? [holder.boxes.join(', ')] : [];
  if (holder.mib) has.push(memory(holder.mib));
  if (holder.core) has.push(`${holder.core / 10} % of the compute`);
  if (holder.devices) has.push(plural(holder.devices, 'device'));
  if (holder.start !== null) has.push(`slices ${holder.start}–${holder.start + holder.slices - 1}`);
  const others = all.filter((other) => other.pod !== pod);
  const answer = el('p', { class: 'answer', 'aria-live': 'polite' });
  return el('li', null,
    el('div', { class: 'who' }, dot, el('span', { class: 'pod', title: `${pod.namespace}/${pod.name}` }, el('b', null, pod.name), el('span', null, pod.namespace))),
    el('div', { class: 'what' }, has.join(' · ') || 'a place'),
    el('div', { class: 'when', title: pod.since ? clock(pod.since) : null },
      `${pod.waiting ? 'waits for the node side' : words(pod.state)}${pod.since ? ` · since ${since(pod.since)}` : ''}${others.length ? ` · beside ${plural(others.length, 'other')}` : ' · alone'}`),
    el('button', { type: 'button', class: 'link', onclick: () => why(pod, answer) }, 'Why here?'),
    answer);
}

function boxFacts(node, box) {
  if (!box) {
    return [fact('cards', String(node.cards.length)), fact('handed out', `${gpus(node.given)} of ${gpus(node.size)} GPUs`),
      fact('free and usable', gpus(node.usable)), fact('free but useless', gpus(node.useless)), fact('out of service', gpus(node.out))];
  }
  if (box.resource) {
    return [fact('resource', box.resource), fact('model', box.model), fact('devices', `${box.used} of ${box.devices}`),
      fact('shared', box.shared ? 'time-sliced: several devices are one GPU' : 'no'), fact('one device', `${gpus(box.size)} GPU`)];
  }
  return [fact('memory', `${memory(box.usedMib)} of ${memory(box.mib)} (${percent(box.usedMib, box.mib)})`),
    fact('compute', `${box.usedCore / 10} % of ${box.core / 10} %`), fact('free', `${gpus(Math.max(0, 1000 - box.given))} GPU`),
    fact('of no use', box.useless > 0.001 ? `${gpus(box.useless * 1000)} GPU of it` : null), fact('model', box.model),
    fact('state', box.state === 'open' ? 'takes pods' : box.state === 'closed' ? 'closed to new pods' : 'unhealthy, so its node side'),
    fact('MIG', box.slices ? `cut into instances, ${plural(box.slices, 'slice')}` : null)];
}

function nodeFacts(node) {
  const states = [!node.present && 'the Node is gone', node.cordoned && 'cordoned', node.paused && 'its plugin is away', node.leftOut && 'left out, since kubelet rejected pods'].filter(Boolean);
  return [fact('node', node.name), fact('dialects', node.dialects.join(', ') || 'none'), fact('node is', states.join('; ') || 'in service')];
}

async function addUuid(node, box, list) {
  try {
    const { data } = await get(`api/v1/nodes/${encodeURIComponent(node.name)}`);
    const card = data.cards.find((each) => each.index === box.index);
    if (card?.uuid && list.isConnected) list.append(fact('UUID', card.uuid));
  } catch {
    // It is of little importance.
  }
}

function holdersOf(node, box) {
  if (box) return box.holders;
  const all = new Map();
  for (const each of [...node.cards, ...node.pools]) {
    for (const { pod, mib, core, devices } of each.holders) {
      const sum = all.get(pod) ?? { pod, mib: 0, core: 0, devices: 0, start: null, boxes: [] };
      Object.assign(sum, { mib: sum.mib + mib, core: sum.core + core, devices: sum.devices + devices });
      sum.boxes.push(each.resource ?? `card ${each.index}`);
      all.set(pod, sum);
    }
  }
  for (const pod of node.lost) if (!all.has(pod)) all.set(pod, { pod, mib: 0, core: 0, devices: 0, start: null, boxes: ['no known card'] });
  return [...all.values()].map((sum) => ({ ...sum, boxes: [...new Set(sum.boxes)] }));
}

function draw(node, box) {
  const dialog = $('detail');
  const kind = !box ? 'Node' : box.resource ? 'Pool' : `Card ${box.index}`;
  const bar = el('div', { class: 'bigbar', role: 'img', 'aria-label': !box ? node.name : box.resource ? poolTitle(node, box) : cardTitle(node, box) });
  if (box) paint(bar, box.resource ? poolSegments(box) : box.segments, box.useless ?? 0, box.resource ? Math.min(box.devices, 64) : box.slices, '');
  const list = el('dl', { class: 'facts' }, boxFacts(node, box).filter(Boolean), nodeFacts(node));
  const holders = holdersOf(node, box);
  dialog.replaceChildren(
    el('header', null, el('h2', { id: 'h-detail', title: node.name }, kind, el('span', null, ` of ${node.name}`.slice(0, 300))),
      el('button', { type: 'button', class: 'close', 'aria-label': 'Close', onclick: close }, '✕')),
    ...(box ? [bar] : []), list,
    el('h3', null, holders.length ? plural(holders.length, 'holder') : 'Nobody is on it'),
    el('ol', { class: 'holders' }, holders.slice(0, HOLDERS_MAX).map((holder) => holderItem(node, holder, holders))),
    holders.length > HOLDERS_MAX ? el('p', { class: 'hint' }, `and ${holders.length - HOLDERS_MAX} more`) : '');
  if (box && !box.resource) addUuid(node, box, list);
}

export function close() {
  const dialog = $('detail');
  if (!dialog.open) return;
  dialog.close();
  shown = null;
  focusWall();
}

export function openDetail(node, box) {
  const dialog = $('detail');
  shown = { node: node.name, key: keyOf(box), stamp: node.stamp };
  draw(node, box);
  if (!dialog.open) dialog.show();
  dialog.scrollTop = 0;
  dialog.focus();
}

// After the cluster has changed: what is shown is shown anew if it is another.
export function redrawDetail() {
  if (!shown) return;
  const node = model.nodes.find((each) => each.name === shown.node);
  const box = node && [...node.cards, ...node.pools].find((each) => keyOf(each) === shown.key);
  if (!node || (shown.key !== null && !box)) {
    close();
  } else if (node.stamp !== shown.stamp) {
    const hadFocus = $('detail').contains(document.activeElement);
    shown.stamp = node.stamp;
    draw(node, box ?? null);
    if (hadFocus) $('detail').focus();
  }
}

// SPDX-License-Identifier: Apache-2.0
// Pods that wait for a GPU: why, how close they are to one, and what would help.
import { get } from './api.js';
import { $, clock, el, plural, setText, short, since, words } from './dom.js';
import { colour, model } from './model.js';
import { planButton } from './plan.js';

const SHOWN_MAX = 20;     // pods with elements at first, and as many more each time
const ANSWER_S = 60;      // how long an explanation is taken for true, whatever changes
const UNCHANGED_S = 600;  // and if nothing does
const REST_TIMES = 6;
const GROUPS_MAX = 8;

const items = new Map();  // "NAMESPACE/NAME" -> {li, update, explained, at, pod}
let showNode = () => {};
let busyUntil = 0;        // explaining takes the server's time: it gets so many times as much rest
let running = false;
let change = 0;           // counts what has changed in the cluster
let most = SHOWN_MAX;
let search = '';
let last = null;          // what was drawn last
let find = () => {};      // has the list read for another search

// --- an explanation ----------------------------------------------------------------------------

function nodeLink(name) {
  return el('button', { type: 'button', class: 'link', title: name, onclick: () => showNode(name) }, short(name, 40));
}

const code = (group) => words(group.cordoned ? 'cordoned' : group.barrier ?? group.reason ?? 'takes it');

function groupRow(group) {
  return el('tr', null, el('td', { class: 'n' }, String(group.nodes)), el('td', null, code(group)), el('td', null, nodeLink(group.closest)), el('td', null, group.why));
}

function groupTable(groups) {
  return el('table', { class: 'groups' },
    el('thead', null, el('tr', null, ['Nodes', 'Reason', 'Closest', 'Why'].map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', null, groups.slice(0, GROUPS_MAX).map(groupRow)));
}

const changes = (remedies) => remedies.map((each) => each.text).join(', and ');

export function remediesOf(data) {
  return [...data.remedies.map((each) => ({ text: each.text, node: each.node })),
    ...data.pairs.map((pair) => ({ text: changes(pair.changes), node: pair.node }))];
}

export function explanationView(data, asked) {
  const parts = [el('p', { class: `verdict ${data.verdict}` }, data.summary)];
  if (data.failure) parts.push(el('p', { class: 'bad' }, data.failure));
  if (data.place) parts.push(el('p', null, `${data.place.cards} of `, nodeLink(data.place.node), ` (${data.place.state})`));
  if (data.groups.length && data.verdict !== 'placed') parts.push(groupTable(data.groups));
  const remedies = remediesOf(data);
  if (remedies.length) {
    parts.push(el('h4', null, data.remedies.length ? 'Any of these would admit it' : 'Any of these pairs would admit it'),
      el('ol', { class: 'remedies' }, remedies.slice(0, GROUPS_MAX).map((each) => el('li', null, each.text, '; it would go to ', nodeLink(each.node)))));
  }
  const { preemption } = data;
  if (preemption?.pods.length) parts.push(el('p', null, `Preemption would end, on ${preemption.node}: ${preemption.pods.map((pod) => `${pod.namespace}/${pod.name}`).join(', ')}.`));
  else if (preemption?.whyNot) parts.push(el('p', { class: 'hint' }, `Preemption ends nobody: ${preemption.whyNot}`));
  if (data.verdict === 'refused' && asked) parts.push(planButton(asked, nodeLink));
  if (data.heldBack) parts.push(el('p', { class: 'hint' }, `Held back: ${data.heldBack}`));
  if (data.notLookedAt.length) parts.push(el('p', { class: 'hint' }, `Not looked at: ${data.notLookedAt.join(', ')}`));
  return parts;
}

// --- one pod -----------------------------------------------------------------------------------

function brief(item) {
  const { data, error } = item;
  if (error) return [el('p', { class: 'hint' }, error)];
  if (!data) return [el('p', { class: 'hint' }, 'finding out why…')];
  if (data.verdict === 'fits') return [el('p', { class: 'good' }, 'It fits on ', nodeLink(data.place.node), '. kube-scheduler has yet to bind it.')];
  if (data.verdict !== 'refused') return [el('p', { class: data.verdict === 'placed' ? 'good' : 'bad' }, data.failure ?? data.summary)];
  const first = data.groups[0];
  const [remedy] = remediesOf(data);
  return [
    first && el('p', { class: 'why' }, el('span', { class: 'tag' }, code(first)), ' closest: ', nodeLink(first.closest), ` – ${first.why}`),
    remedy ? el('p', { class: 'remedy' }, el('span', { 'aria-hidden': 'true' }, '→ '), el('span', { class: 'sr' }, 'Would help: '), remedy.text) : el('p', { class: 'hint' }, 'No single change or pair of changes that was tried would admit it.'),
  ];
}

function fill(item) {
  item.brief.replaceChildren(...brief(item).filter(Boolean));
  const shown = item.data && item.more.open ? JSON.stringify(item.data) : '';
  if (shown !== item.shown) item.full.replaceChildren(...(shown ? explanationView(item.data, { pod: item.key }) : []));
  item.shown = shown;
  item.more.hidden = !item.data;
}

function build(pod, key) {
  const dot = el('i', { class: 'dot', 'aria-hidden': 'true' });
  dot.style.background = colour(pod.namespace);
  const age = el('span', { class: 'age', title: pod.created });
  const item = { key, age, brief: el('div', { class: 'brief' }), full: el('div', { class: 'full' }), shown: '', at: 0 };
  item.asks = el('p', { class: 'what' });
  item.more = el('details', { ontoggle: () => fill(item) }, el('summary', null, 'all nodes and remedies'), item.full);
  item.li = el('li', { class: 'pending' },
    el('div', { class: 'who' }, dot, el('span', { class: 'pod', title: key }, el('b', null, pod.name), el('span', null, pod.namespace)), age),
    item.asks, item.brief, item.more);
  fill(item);
  return item;
}

function update(item, pod) {
  item.pod = pod;
  setText(item.age, pod.created ? since(Date.parse(pod.created) / 1000) : '');
  item.age.title = pod.created ? clock(Date.parse(pod.created) / 1000) : '';
  setText(item.asks, `${pod.asks}${pod.dialect ? ` · ${pod.dialect}` : ''}${pod.priority ? ` · priority ${pod.priority}` : ''}${pod.place ? ` · room is kept on ${short(pod.place, 40)}` : ''}`);
}

// --- the list ----------------------------------------------------------------------------------

export const oldest = (pods) => Math.min(...pods.map((pod) => (pod.created ? Date.parse(pod.created) / 1000 : Infinity)));

const STATES = { waiting: 'waits for room for all', placed: 'has room, and is being bound', half: 'is half: some of it runs' };

// Groups come whole or not at all: how many of those that are needed have a place.
function groupItem(group) {
  const there = group.held + group.bound;
  const title = `${group.namespace}/${group.name}`;
  const bar = el('meter', { min: 0, max: Math.max(group.needs, 1), value: Math.min(there, group.needs), 'aria-label': `${there} of ${group.needs} have a place` });
  return el('li', { class: `gang ${group.state}` },
    el('span', { class: 'pod', title }, el('b', null, short(group.name, 40)), el('span', null, group.namespace)), bar,
    el('span', { class: 'why' }, `${there} of ${group.needs} have a place · ${STATES[group.state] ?? group.state}${group.state === 'waiting' ? ` · ${group.fit} would fit now` : ''}${group.known < group.needs ? ` · only ${plural(group.known, 'pod')} of it known` : ''}`));
}

function groupList(groups) {
  if (!groups.length) return [];
  return [el('ul', { class: 'gangs', 'aria-label': 'Groups of pods' }, groups.slice(0, GROUPS_MAX).map(groupItem)),
    ...(groups.length > GROUPS_MAX ? [el('p', { class: 'hint' }, `and ${plural(groups.length - GROUPS_MAX, 'group')} more`)] : [])];
}

// What 'plan --apply' does now, as it says on the nodes whose cards it keeps.
function planList() {
  const running = model.nodes.filter((node) => node.plan);
  return running.length ? [el('ul', { class: 'gangs', 'aria-label': 'Plans that are carried out' },
    running.slice(0, GROUPS_MAX).map((node) => el('li', { class: 'running' }, el('span', { class: 'tag' }, 'moving'), ' ', nodeLink(node.name), ` ${node.plan}`)))] : [];
}

// Whatever is in the search, told in the address of the list.
export const waitingPath = () => `api/v1/waiting${search ? `?search=${encodeURIComponent(search)}` : ''}`;
export const isSearching = () => search !== '';

export function noteChange() {
  change += 1;
}

function moreButton(rest) {
  const more = Math.min(rest, SHOWN_MAX);
  return el('button', { type: 'button', onclick: () => { most += SHOWN_MAX; drawWaiting(last); } }, `Show ${more} more of ${plural(rest, 'pod')} that came later`);
}

export function drawWaiting(data) {
  const body = $('waiting').querySelector('.body .found');
  const seen = new Set();
  const list = body.querySelector('ol.list') ?? el('ol', { class: 'list' });
  last = data;
  data.pods.slice(0, most).forEach((pod, at) => {
    const key = `${pod.namespace}/${pod.name}`;
    const item = items.get(key) ?? build(pod, key);
    items.set(key, item);
    seen.add(key);
    update(item, pod);
    if (list.children[at] !== item.li) list.insertBefore(item.li, list.children[at] ?? null);
  });
  for (const [key, item] of items) {
    if (seen.has(key)) continue;
    item.li.remove();
    items.delete(key);
  }
  const rest = data.total - seen.size;
  body.replaceChildren(...planList(), ...groupList(data.groups), ...(data.total ? [list] : [el('p', { class: 'empty' }, search ? 'No pod that waits is like that.' : 'Nobody waits.')]),
    ...(rest > 0 ? [seen.size < data.pods.length ? moreButton(rest) : el('p', { class: 'hint' }, `and ${plural(rest, 'pod')} that came later: search for them`)] : []));
}

// One explanation at a time, of the one that was told the longest ago, and only if the panel is in view.
export async function explainNext() {
  const now = performance.now();
  if (running || now < busyUntil || !$('waiting').offsetParent) return;
  const due = [...items.values()].filter((item) => item.at === 0 || now - item.at > (item.change === change ? UNCHANGED_S : ANSWER_S) * 1000);
  const item = due.sort((a, b) => a.at - b.at)[0];
  if (!item) return;
  running = true;
  item.change = change;
  try {
    item.data = (await get(`api/v1/explain?pod=${encodeURIComponent(item.key)}&nodes=0`)).data;
    item.error = null;
  } catch (error) {
    item.error = error.message;
  }
  running = false;
  item.at = performance.now();
  busyUntil = item.at + REST_TIMES * (item.at - now);
  fill(item);
  setTimeout(explainNext, Math.max(50, busyUntil - performance.now()));
}

export function startWaiting(onNode, onSearch) {
  showNode = onNode;
  find = onSearch;
  const text = el('input', { type: 'search', id: 'q-text', placeholder: 'Search pods that wait', 'aria-label': 'Search pods that wait', autocomplete: 'off', spellcheck: 'false' });
  text.addEventListener('input', () => {
    search = text.value.trim();
    most = SHOWN_MAX;
    find();
  });
  $('waiting').querySelector('.body').replaceChildren(el('form', { role: 'search', 'aria-label': 'Pods that wait', onsubmit: (event) => event.preventDefault() }, text), el('div', { class: 'found' }));
}

// SPDX-License-Identifier: Apache-2.0
// What if: a manifest is pasted; fit says how many there is room for, explain says why not.
import { post } from './api.js';
import { $, el, plural, short } from './dom.js';
import { explanationView } from './waiting.js';

const PLACES_MAX = 12;

const EXAMPLE = `apiVersion: apps/v1
kind: Deployment
metadata: {name: embedder, namespace: serving}
spec:
  replicas: 4
  template:
    spec:
      containers:
      - name: main
        resources:
          limits: {aliyun.com/gpu-mem: 6}
`;

// A document may begin with a separator, and comments before it.
const SEPARATOR = /^(\s*(#.*)?\n)*---.*\n/;

// How many lines before its own the manifest has in the document of fitBody, which also indents it by 2.
export function linesBefore(manifest, replicas, drain) {
  const cut = (manifest.replaceAll('\r', '').match(SEPARATOR)?.[0].split('\n').length ?? 1) - 1;
  return 1 + (replicas > 0 ? 1 : 0) + (drain.length ? 1 : 0) - cut;
}

// An error about the document as one about the manifest.
export function inManifest(message, before) {
  return message.replace(/\bline (\d+)(, column (\d+))?/g, (all, line, more, column) => `line ${Math.max(1, line - before)}${more ? `, column ${Math.max(1, column - 2)}` : ''}`);
}

// fit takes a document with the manifest under "pod". JSON stays JSON; YAML is indented.
export function fitBody(manifest, replicas, drain) {
  const wishes = { ...(replicas > 0 ? { replicas } : {}), ...(drain.length ? { drain } : {}) };
  if (!manifest.trim()) return JSON.stringify(wishes);
  try {
    return JSON.stringify({ ...wishes, pod: JSON.parse(manifest) });
  } catch {
    const lines = manifest.replaceAll('\r', '').replace(SEPARATOR, '').split('\n');
    const head = Object.entries(wishes).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join('');
    return `${head}pod:\n${lines.map((line) => `  ${line}`).join('\n')}\n`;
  }
}

function fitView(fit, showNode) {
  const link = (name, text) => el('button', { type: 'button', class: 'link', title: name, onclick: () => showNode(name) }, text);
  return [
    el('p', { class: `verdict ${fit.fits ? 'fits' : 'refused'}` }, fit.summary),
    fit.places.length ? el('ul', { class: 'places' }, fit.places.slice(0, PLACES_MAX).map((place) => el('li', null, el('b', null, plural(place.pods, 'pod')), ' on ', place.new ? short(place.node, 40) : link(place.node, short(place.node, 40)))),
      fit.places.length > PLACES_MAX ? el('li', null, `and ${fit.places.length - PLACES_MAX} more nodes`) : '') : null,
    fit.drained.length ? el('ul', { class: 'places' }, fit.drained.slice(0, PLACES_MAX).map((pod) => el('li', null, `${short(`${pod.namespace}/${pod.name}`, 60)}: `, pod.to ? `to ${short(pod.to, 40)}` : `nowhere: ${pod.why}`))) : null,
  ].filter(Boolean);
}

export function startWhatIf(showNode) {
  const text = el('textarea', { id: 'w-text', rows: 9, spellcheck: 'false', placeholder: 'A Pod, Deployment, StatefulSet, Job or CronJob, as YAML or JSON' });
  const replicas = el('input', { id: 'w-replicas', type: 'number', min: 1, max: 10000, placeholder: 'as it says' });
  const drain = el('input', { id: 'w-drain', type: 'text', placeholder: 'nodes to drain first', autocomplete: 'off', spellcheck: 'false' });
  const answer = el('div', { class: 'answers', 'aria-live': 'polite' });
  const failed = (error) => [el('p', { class: 'bad' }, error.message)];

  async function ask(event) {
    event.preventDefault();
    const manifest = text.value;
    const nodes = drain.value.split(/[\s,]+/).filter(Boolean);
    answer.replaceChildren(el('p', { class: 'hint' }, 'asking…'));
    const before = linesBefore(manifest, Number(replicas.value), nodes);
    const jobs = [post('api/v1/fit', fitBody(manifest, Number(replicas.value), nodes), 'application/yaml').then((fit) => fitView(fit, showNode), (error) => failed({ message: inManifest(error.message, before) }))];
    if (manifest.trim()) jobs.push(post('api/v1/explain?nodes=0', manifest, 'application/yaml').then((data) => explanationView(data, { manifest }), failed));
    const [fit, why] = await Promise.all(jobs);
    answer.replaceChildren(el('h3', null, 'How many fit'), ...fit, ...(why ? [el('h3', null, 'One of them, now'), ...why] : []));
  }

  $('whatif').querySelector('.body').replaceChildren(
    el('form', { class: 'ask', onsubmit: ask },
      el('label', { for: 'w-text' }, 'Manifest'), text,
      el('div', { class: 'pair' },
        el('label', { for: 'w-replicas' }, 'Replicas', replicas),
        el('label', { for: 'w-drain' }, 'Drain', drain)),
      el('div', { class: 'pair' },
        el('button', { type: 'submit', class: 'main' }, 'Would it fit?'),
        el('button', { type: 'button', onclick: () => { text.value = EXAMPLE; text.focus(); } }, 'An example')),
      el('p', { class: 'hint' }, 'Nothing is changed: pods are placed on a copy of the ledger.')),
    answer);
}

// SPDX-License-Identifier: Apache-2.0
// Which pods to move so that one finds room: asked for when somebody wants to know, and shown pod by pod, before and
// after. Nothing is moved from here.
import { get, post } from './api.js';
import { el, plural, short } from './dom.js';

function stepRow(step, at, nodeLink) {
  return el('tr', null, el('td', { class: 'n' }, String(at + 1)),
    el('td', { title: `${step.namespace}/${step.name}` }, short(`${step.namespace}/${step.name}`, 48)),
    el('td', null, nodeLink(step.from), el('br'), step.frees),
    el('td', null, nodeLink(step.to), el('br'), step.takes),
    el('td', null, step.waitsFor));
}

function stepTable(steps, nodeLink) {
  return el('table', { class: 'groups moves' },
    el('thead', null, el('tr', null, ['Step', 'Pod', 'Before', 'After', 'Then wait for'].map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', null, steps.map((step, at) => stepRow(step, at, nodeLink))));
}

export function planView(plan, pod, nodeLink) {
  if (!plan.reached) {
    return [el('p', { class: 'verdict refused' }, `No moves make ${plan.goal}.`), el('p', { class: 'hint' }, plan.why),
      plan.stays.length ? el('p', { class: 'hint' }, `Looked at, and may not be moved: ${plan.stays.slice(0, 8).map((each) => `${each.namespace}/${each.name} (${each.why})`).join(', ')}${plan.stays.length > 8 ? ` and ${plan.stays.length - 8} more` : ''}`) : null].filter(Boolean);
  }
  const place = plan.node ? [' The pod then goes to ', nodeLink(plan.node), plan.cards ? `, ${plan.cards}.` : '.'] : [];
  if (!plan.steps.length) return [el('p', { class: 'verdict fits' }, `There is ${plan.goal}, as it is.`, ...place)];
  return [
    el('p', { class: 'verdict fits' }, `${plural(plan.steps.length, 'move')} would make ${plan.goal}${plan.fewest ? '' : ' (fewer may do)'}.`, ...place),
    stepTable(plan.steps, nodeLink),
    pod ? el('p', { class: 'hint' }, 'To carry it out: ', el('code', null, `gpuledger plan ${pod} --apply`)) : null,
  ].filter(Boolean);
}

// A button that asks, and then becomes the answer. `manifest` is of a pod that need not exist.
export function planButton({ pod, manifest }, nodeLink) {
  const box = el('div', { class: 'plan', 'aria-live': 'polite' });
  async function ask() {
    box.replaceChildren(el('p', { class: 'hint' }, 'looking for moves…'));
    try {
      const plan = pod ? (await get(`api/v1/plan?pod=${encodeURIComponent(pod)}`)).data : await post('api/v1/plan', manifest, 'application/yaml');
      box.replaceChildren(...planView(plan, pod, nodeLink));
    } catch (error) {
      box.replaceChildren(el('p', { class: 'bad' }, error.message));
    }
  }
  box.append(el('button', { type: 'button', class: 'ask-plan', onclick: ask }, 'Which pods to move?'));
  return box;
}

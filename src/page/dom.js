// SPDX-License-Identifier: Apache-2.0
// Elements and texts. What comes from the cluster becomes a text node or an attribute, never markup.

export const $ = (id) => document.getElementById(id);

// el('div', {class: 'x', title: name, onclick: f}, 'text', child): null and false are left out.
export function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// At most one decimal, and none where it says nothing.
export function number(value) {
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString('en-US') : value.toFixed(1).replace(/\.0$/, '');
}

export const gpus = (thousandths) => number(thousandths / 1000);

export function memory(mib) {
  return mib >= 1024 ? `${number(mib / 1024)} GiB` : `${number(mib)} MiB`;
}

export const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : '–');

export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;

// Seconds: "40 s", "12 min", "3 h", "5 d".
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

export const since = (unix) => span(Date.now() / 1000 - unix);

export const clock = (unix) => new Date(unix * 1000).toLocaleString();

// Beyond this a name is cut in the middle; its title has the whole.
export function short(text, max = 60) {
  return text.length <= max ? text : `${text.slice(0, max / 2 - 1)}…${text.slice(-(max / 2))}`;
}

// "insufficient_memory" as words.
export const words = (code) => code.replaceAll('_', ' ');

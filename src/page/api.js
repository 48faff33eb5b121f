// SPDX-License-Identifier: Apache-2.0
// What the page asks its own server for, and nobody else.
import { $, setText } from './dom.js';

const TOKEN = 'gpuledger-token'; // of this tab alone

const kept = new Map(); // path -> {tag, data}: what was sent before, so that it need not be sent again

let asking = null; // one question for the token at a time

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
  kept.clear();
}

function askToken(why) {
  asking ??= new Promise((resolve) => {
    const dialog = $('token');
    const text = $('token-text');
    setText($('token-why'), why);
    text.value = '';
    dialog.addEventListener('close', () => {
      asking = null;
      if (text.value.trim()) sessionStorage.setItem(TOKEN, text.value.trim());
      text.value = '';
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function send(path, options) {
  const headers = { Accept: 'application/json', ...options.headers };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  const reply = await fetch(path, {
    ...options, headers, cache: 'no-store', credentials: 'same-origin', redirect: 'error', referrerPolicy: 'no-referrer',
  });
  if (reply.status !== 401) return reply;
  const now = sessionStorage.getItem(TOKEN);
  if (now !== null && now !== token) return send(path, options); // another one was given meanwhile
  sessionStorage.removeItem(TOKEN);
  await askToken(token ? 'The server does not take that token.' : 'The server shows this page to everybody, and the cluster to those who have the token.');
  return send(path, options);
}

async function fail(reply) {
  let why = `${reply.status} ${reply.statusText}`;
  try {
    why = (await reply.json()).error ?? why;
  } catch {
    // The status has to do.
  }
  throw Object.assign(new Error(why), { status: reply.status });
}

// {data, changed}: `changed` is false if it is what was sent before, and `data` is then the same object.
export async function get(path) {
  const old = kept.get(path);
  const reply = await send(path, { headers: old ? { 'If-None-Match': old.tag } : {} });
  if (reply.status === 304 && old) return { data: old.data, changed: false };
  if (!reply.ok) await fail(reply);
  const data = await reply.json();
  const tag = reply.headers.get('ETag');
  if (tag) kept.set(path, { tag, data });
  return { data, changed: true };
}

// Paths of a view in pieces that are not asked for any more.
export function forget(paths) {
  for (const path of paths) kept.delete(path);
}

export async function post(path, body, type) {
  const reply = await send(path, { method: 'POST', body, headers: { 'Content-Type': type } });
  if (!reply.ok) await fail(reply);
  return reply.json();
}

// What /readyz fails on, and why no pod is evicted; each null if all is well.
export async function readiness() {
  const reply = await send('readyz?verbose', {});
  const text = await reply.text();
  const stopped = /^\[\+\]evictions ok, but stopped: (.*)$/m.exec(text);
  return { failure: reply.ok ? null : failures(text), stopped: stopped && stopped[1] };
}

function failures(text) {
  return text.split('\n').filter((line) => line.startsWith('[-]')).map((line) => line.slice(3)).join('; ') || 'not ready';
}

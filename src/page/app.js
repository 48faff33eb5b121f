// SPDX-License-Identifier: Apache-2.0
// Reads the cluster from time to time and has it drawn.
import { forgetToken, get, hasToken, readiness } from './api.js';
import { close, openDetail, redrawDetail } from './detail.js';
import { $, setText, span } from './dom.js';
import { readWall } from './model.js';
import { drawDecisions, drawHeadline, drawQuotas } from './panels.js';
import { drawWaiting, explainNext, isSearching, noteChange, startWaiting, waitingPath } from './waiting.js';
import { drawWall, showNode, startWall } from './wall.js';
import { startWhatIf } from './whatif.js';

const REST_MS = 5000;      // between two readings,
const REST_TIMES = 20;     // or so many times as long as the last one took,
const REST_MAX_MS = 60000; // but not longer

const state = { waiting: null, audit: null, failure: null, stopped: null };
let paused = false;
let timer = 0;
let reading = false;
let readAt = 0;  // when all was read last
let failed = ''; // why it cannot be read

function drawLive() {
  const live = $('live');
  live.dataset.state = failed ? 'bad' : paused ? 'paused' : 'good';
  const age = readAt ? span((Date.now() - readAt) / 1000) : '';
  const text = failed ? `stale${age ? `, ${age} old` : ''}` : paused ? `paused, ${age} old` : readAt ? 'live' : 'reading…';
  setText($('live-text'), text);
  const trouble = $('trouble');
  trouble.hidden = !failed;
  if (failed) setText(trouble, `The server cannot be read: ${failed}. What is shown is as it was${age ? ` ${age} ago` : ''}.`);
  $('forget').hidden = !hasToken();
}

let searches = 0;

// The pods that wait and that are searched for; only the latest answer counts.
async function readFound() {
  const mine = ++searches;
  const { data } = await get(waitingPath());
  if (mine === searches) drawWaiting(data);
}

async function search() {
  try {
    await readFound();
    explainNext();
  } catch {
    // The next reading says so.
  }
}

async function readAll() {
  if (await readWall(drawWall)) {
    noteChange();
    drawWall();
    redrawDetail();
  }
  const [waiting, decisions, audit, quotas, ready] = await Promise.all([
    get('api/v1/waiting'), get('api/v1/decisions'), get('api/v1/audit'), get('api/v1/quotas'), readiness()]);
  Object.assign(state, { waiting: waiting.data, audit: audit.data, failure: ready.failure, stopped: ready.stopped });
  if (waiting.changed) noteChange();
  if (isSearching()) await readFound();
  else drawWaiting(waiting.data);
  setText($('n-waiting'), waiting.data.total ? String(waiting.data.total) : '');
  drawDecisions(decisions.data, decisions.changed);
  if (quotas.changed) drawQuotas(quotas.data);
  drawHeadline(state);
}

async function read() {
  clearTimeout(timer);
  if (reading || document.hidden) return;
  reading = true;
  const start = performance.now();
  try {
    await readAll();
    readAt = Date.now();
    failed = '';
  } catch (error) {
    failed = error.message;
  }
  reading = false;
  document.body.dataset.read = failed ? 'no' : 'yes';
  drawLive();
  explainNext();
  if (!paused) timer = setTimeout(read, Math.min(Math.max(REST_MS, REST_TIMES * (performance.now() - start)), REST_MAX_MS));
}

async function drawAbout() {
  try {
    const { data } = await get('version');
    setText($('about'), `${data.version} · ${data.cluster === 'snapshot' ? 'a saved cluster' : 'Kubernetes'}`);
  } catch {
    // The rest of the page tells that nobody answers.
  }
}

function showTab(name) {
  document.body.dataset.tab = name;
  document.querySelectorAll('.tabs button').forEach((button) => button.setAttribute('aria-pressed', String(button.dataset.tab === name)));
  explainNext();
}

const themes = ['auto', 'light', 'dark'];

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  setText($('theme'), `Theme: ${name}`);
  localStorage.setItem('gpuledger-theme', name);
}

function goToNode(name) {
  if (getComputedStyle(document.querySelector('.tabs [data-tab="wall"]')).display !== 'none') showTab('wall');
  showNode(name);
}

function start() {
  setTheme(themes.includes(localStorage.getItem('gpuledger-theme')) ? localStorage.getItem('gpuledger-theme') : 'auto');
  startWall(openDetail);
  startWaiting(goToNode, search);
  startWhatIf(goToNode);
  document.querySelectorAll('.tabs button').forEach((button) => button.addEventListener('click', () => showTab(button.dataset.tab)));
  showTab(matchMedia('(max-width: 899px)').matches ? 'wall' : 'waiting');
  $('theme').addEventListener('click', () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length]));
  $('pause').addEventListener('click', () => {
    paused = !paused;
    $('pause').setAttribute('aria-pressed', String(paused));
    if (paused) clearTimeout(timer);
    else read();
    drawLive();
  });
  $('forget').addEventListener('click', () => {
    forgetToken();
    read();
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) read(); });
  document.addEventListener('keydown', (event) => {
    const typing = event.target.closest('input, textarea, select');
    if (event.key === 'Escape' && !$('token').open) close();
    else if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      $('f-text').focus();
    }
  });
  setInterval(() => { if (failed || paused) drawLive(); }, 5000);
  drawAbout();
  read();
}

start();

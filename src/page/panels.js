// SPDX-License-Identifier: Apache-2.0
// The headline, the quotas and the last decisions.
import { $, clock, el, gpus, number, percent, plural, setText, short, since, words } from './dom.js';
import { colour, model } from './model.js';
import { oldest } from './waiting.js';

const DECISIONS_SHOWN = 50;
const QUOTAS_SHOWN = 60;

// --- headline ----------------------------------------------------------------------------------

function figure(name, value, detail, kind) {
  return el('div', { class: kind ? `fig ${kind}` : 'fig' }, el('dt', null, name), el('dd', { class: 'value' }, value), el('dd', { class: 'sub', title: detail }, detail));
}

function verdict(audit, failure) {
  if (failure) return figure('Ledger', 'not ready', failure, 'bad');
  const report = audit?.report;
  if (audit?.error) return figure('Ledger', 'not audited', audit.error, 'warn');
  if (!report) return figure('Ledger', '–', 'no audit has ended yet', '');
  const when = `audited ${since(Date.parse(report.finished) / 1000)} ago`;
  if (report.differences > 0) {
    const cause = report.causes.find((each) => each.difference && each.count > 0);
    return figure('Ledger', plural(report.differences, 'finding'), `${cause ? `${words(cause.cause)}; ` : ''}${when}`, 'bad');
  }
  return figure('Ledger', 'agrees', `${plural(report.pods, 'pod')}, ${when}`, 'good');
}

export function drawHeadline({ waiting, audit, failure, stopped }) {
  const { sums } = model;
  if (!sums) return;
  const outOf = [sums.broken && `${sums.broken} unhealthy`, sums.closed && `${sums.closed} closed`, sums.cordoned && `${plural(sums.cordoned, 'node')} cordoned`].filter(Boolean).join(', ');
  const first = waiting?.pods.length ? oldest(waiting.pods) : Infinity;
  $('figures').replaceChildren(
    figure('GPUs', gpus(sums.size), `in ${plural(sums.nodes, 'node')}`, ''),
    figure('Handed out', gpus(sums.given), `${percent(sums.given, sums.size)}, to ${plural(sums.pods, 'pod')}`, 'given'),
    figure('Free and usable', gpus(sums.usable), model.demandKnown ? 'by the expected pods' : 'too few pods seen', 'usable'),
    figure('Free but useless', model.demandKnown ? gpus(sums.useless) : '–', model.demandKnown ? 'fragmented' : 'not known yet', sums.useless >= 1000 ? 'useless warn' : 'useless'),
    figure('Out of service', gpus(sums.out), outOf || 'nothing', sums.broken || sums.closed ? 'out bad' : 'out'),
    figure('Waiting', waiting ? number(waiting.total) : '–', Number.isFinite(first) ? `the oldest for ${since(first)}` : waiting?.total ? 'since when is not known' : 'nobody', waiting?.total ? 'warn' : ''),
    verdict(audit, failure),
    ...(stopped ? [figure('Evictions', 'stopped', stopped, 'warn')] : []));
  drawSum(sums);
}

function drawSum(sums) {
  const parts = [['given', sums.given], ['usable', sums.usable], ['useless', sums.useless], ['out', sums.out]].filter(([, amount]) => amount > 0);
  const bar = $('sum');
  bar.replaceChildren(...parts.map(([name, amount]) => {
    const piece = el('span', { class: name });
    piece.style.flexGrow = amount;
    return piece;
  }));
  bar.setAttribute('aria-label', `Of ${gpus(sums.size)} GPUs: ${gpus(sums.given)} handed out, ${gpus(sums.usable)} free and usable, ${gpus(sums.useless)} free but useless, ${gpus(sums.out)} out of service`);
}

// --- quotas ------------------------------------------------------------------------------------

function amount(quota, value) {
  if (quota.unit === 'thousandths') return `${gpus(value)} GPUs`;
  if (quota.unit === 'MiB') return value >= 1024 ? `${number(value / 1024)} GiB` : `${value} MiB`;
  return `${value} ${quota.unit}`;
}

function quotaItem(quota) {
  const bar = el('div', { class: 'meter', role: 'meter', 'aria-label': `${quota.namespace}: ${quota.key}`, 'aria-valuemin': 0, 'aria-valuemax': quota.limit, 'aria-valuenow': Math.min(quota.used, quota.limit), 'aria-valuetext': `${amount(quota, quota.used)} of ${amount(quota, quota.limit)}` }, el('span', null));
  bar.firstChild.style.width = `${Math.min(100, (100 * quota.used) / Math.max(quota.limit, 1))}%`;
  bar.firstChild.style.background = quota.used > quota.limit ? 'var(--bad)' : colour(quota.namespace);
  return el('li', null,
    el('div', { class: 'who' }, el('span', { class: 'pod', title: quota.namespace }, el('b', null, quota.namespace), el('span', { title: quota.key }, quota.quota ? `${quota.key} · ${quota.quota}` : quota.key)),
      el('span', { class: 'age' }, `${amount(quota, quota.used)} of ${amount(quota, quota.limit)}`)),
    bar);
}

// A quota that lends, as one with a limit: its max, or without one its min.
function asLimit(row) {
  const scale = { 'gpuledger.io/gpus': [1000, 'thousandths'], 'gpuledger.io/gpu-memory': [1 / (1 << 20), 'MiB'] };
  const [times, unit] = scale[row.key] || [1, ''];
  const units = (value) => Math.round(value * times);
  const sure = { unit, used: 0 };
  return { namespace: row.namespace, key: row.key, unit, used: units(row.used), limit: units(row.max ?? row.min),
    quota: `sure of ${amount(sure, units(row.min))}${row.borrowed > 0 ? `, borrows ${amount(sure, units(row.borrowed))}` : ''}` };
}

export function drawQuotas(data) {
  const tab = document.querySelector('.tabs [data-tab="quotas"]');
  const total = data.total + data.elasticTotal;
  tab.hidden = total === 0;
  $('quotas').hidden = total === 0;
  if (total === 0) return;
  const list = [...data.quotas, ...data.elastic.map(asLimit)].sort((a, b) => b.used / b.limit - a.used / a.limit).slice(0, QUOTAS_SHOWN);
  $('quotas').querySelector('.body').replaceChildren(el('ul', { class: 'list' }, list.map(quotaItem)),
    total > list.length ? el('p', { class: 'hint' }, `and ${total - list.length} more, less full`) : '');
}

// --- decisions ---------------------------------------------------------------------------------

function outcome(decision) {
  if (decision.verb === 'bind') {
    if (decision.why) return ['bad', `not bound to ${short(decision.node ?? '', 40)}: ${decision.why}`];
    const card = decision.card === null ? '' : `, card ${decision.card}`;
    return ['good', `${decision.result === 'repeated' ? 'was bound already to' : 'bound to'} ${short(decision.node ?? '', 40)}${card}${decision.policy ? `: ${decision.policy} chose it` : ''}`];
  }
  const reasons = decision.refusals.map((each) => `${each.nodes} ${words(each.reason)}`).join(', ');
  if (decision.taking > 0) return ['', `${decision.taking} of ${plural(decision.offered, 'node')} take it${reasons ? `; not: ${reasons}` : ''}`];
  return ['warn', decision.offered ? `none of ${plural(decision.offered, 'node')} takes it: ${reasons}` : 'no node was offered'];
}

function decisionItem(decision) {
  const [kind, text] = outcome(decision);
  const dot = el('i', { class: 'dot', 'aria-hidden': 'true' });
  dot.style.background = colour(decision.namespace);
  return el('li', { class: kind },
    el('div', { class: 'who' }, el('span', { class: `verb ${decision.verb}` }, decision.verb), dot,
      el('span', { class: 'pod', title: `${decision.namespace}/${decision.name}` }, el('b', null, decision.name), el('span', null, decision.namespace)),
      el('span', { class: 'age', 'data-at': decision.last, title: clock(decision.last) })),
    el('p', { class: 'what', title: decision.refusals.map((each) => each.text).join('\n') || null }, text, decision.times > 1 ? el('span', { class: 'times' }, ` ×${decision.times}`) : null));
}

export function drawDecisions(data, changed) {
  const body = $('decisions').querySelector('.body');
  if (changed || !body.firstChild) {
    body.replaceChildren(data.decisions.length
      ? el('ol', { class: 'list decisions' }, data.decisions.slice(0, DECISIONS_SHOWN).map(decisionItem))
      : el('p', { class: 'empty' }, 'Nothing has been decided since the program began.'));
  }
  body.querySelectorAll('[data-at]').forEach((node) => setText(node, since(Number(node.dataset.at))));
}

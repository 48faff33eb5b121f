#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the Grafana board, dashboard.json: manifests/monitoring/board.py."""

import json

WIDTH, HEIGHT = 24, 7

# title, kind, unit, width, what it shows, [(query, legend)]
ROWS = {
    "Now": [
        ("GPU memory handed out", "stat", "percentunit", 4, "Of all cards together.",
         [("gpuledger:memory_used:ratio", "")]),
        ("Free in useless pieces", "stat", "none", 4,
         "GPUs whose free parts a pod that is expected, on average, could not use.",
         [("gpuledger:fragmented_gpus:max", "")]),
        ("Pods with a GPU", "stat", "none", 4, "In the ledger, by state.",
         [("max by (state) (gpuledger_allocations)", "{{state}}")]),
        ("Wait for their device plugin", "stat", "none", 4, "Bound, and not matched yet.",
         [("max(gpuledger_pods_waiting)", "")]),
        ("Cards that do not work", "stat", "none", 4, "Or whose node side does not.",
         [("max(gpuledger_cards) - min(gpuledger_cards_healthy)", "")]),
        ("Ledger", "stat", "none", 4, "Its sums against a fresh addition, and the audit's findings.",
         [("max(gpuledger_ledger_drift)", "drift"),
          ('sum(max by (cause) (gpuledger_audit_differences{cause!~"unconfirmed|quota_label"}))', "findings")]),
    ],
    "Cards": [
        ("Memory handed out, by node", "timeseries", "percentunit", 12, "",
         [("gpuledger:node_memory_used:ratio", "{{node}}")]),
        ("Fragmented GPUs, by node", "timeseries", "none", 12, "",
         [("max by (node) (gpuledger_node_fragmented_gpus)", "{{node}}")]),
        ("Cards", "table", "bytes", 12, "Memory that pods hold.",
         [("max by (node, card) (gpuledger_card_memory_used_bytes)", "")]),
        ("Devices given by count", "timeseries", "none", 12, "Whole cards, replicas and MIG instances.",
         [("sum by (resource) (max by (node, resource) (gpuledger_pool_devices_used))", "{{resource}} held"),
          ("sum by (resource) (max by (node, resource) (gpuledger_pool_devices))", "{{resource}}")]),
    ],
    "Decisions": [
        ("Binds a second", "timeseries", "ops", 8, "By how they ended.",
         [("gpuledger:binds:rate5m > 0", "{{result}}")]),
        ("Refusals a second", "timeseries", "ops", 8, "A node for a pod, by reason.",
         [("gpuledger:refusals:rate5m > 0", "{{reason}}")]),
        ("Calls, 99th percentile", "timeseries", "s", 8, "By verb. A bind's includes its waits.",
         [("gpuledger:verb_duration_seconds:p99", "{{verb}}")]),
        ("Where a bind's time goes", "timeseries", "s", 8, "Mean. queue: the device plugin; api: the API server.",
         [('sum by (phase) (rate(gpuledger_verb_duration_seconds_sum{verb="bind",phase!="total"}[5m]))'
           ' / on () group_left () sum(rate(gpuledger_verb_duration_seconds_count{verb="bind",phase="total"}[5m]))',
           "{{phase}}")]),
        ("Preemption", "timeseries", "ops", 8, "Nodes that kube-scheduler offered, by what became of them.",
         [("sum by (result) (rate(gpuledger_preempt_nodes_total[5m]))", "{{result}}")]),
        ("Pods that kubelet rejected", "timeseries", "ops", 8, "",
         [("sum by (reason) (rate(gpuledger_rejected_pods_total[5m]))", "{{reason}}")]),
        ("Evictions", "timeseries", "ops", 16, "By capability, and what became of them.",
         [("gpuledger:evictions:rate5m > 0", "{{capability}}: {{outcome}}")]),
        ("Evictions are stopped", "stat", "none", 8, "By the stop key, or since it cannot be read.",
         [("max(gpuledger_evictions_stopped)", "")]),
        ("Pods evicted within an hour", "timeseries", "none", 24, "By capability, and above what that would be unusual.",
         [('3600 * avg_over_time(gpuledger:evictions:rate5m{outcome="evicted"}[1h]) > 0', "{{capability}}"),
          ('clamp_min(4 * 3600 * avg_over_time(gpuledger:evictions:rate5m{outcome="evicted"}[1d] offset 1h), 20)',
           "{{capability}}: unusual above")]),
    ],
    "The program": [
        ("Calls to the API server", "timeseries", "ops", 8, "By how they ended; watches apart.",
         [("sum by (outcome) (rate(gpuledger_api_calls_total[5m]))", "{{outcome}}")]),
        ("Watches begun again", "timeseries", "ops", 8, "",
         [("sum by (feed) (rate(gpuledger_watch_restarts_total[5m]))", "{{feed}}")]),
        ("Certificate is good for", "stat", "s", 8, "What the listeners show.",
         [("min(gpuledger_certificate_not_after_timestamp_seconds) - time()", "")]),
        ("Memory", "timeseries", "bytes", 8, "Resident.",
         [('process_resident_memory_bytes * on (instance) group_left () gpuledger_build_info', "{{instance}}")]),
        ("Processors", "timeseries", "none", 8, "Used, of one.",
         [("rate(process_cpu_seconds_total[5m]) * on (instance) group_left () gpuledger_build_info",
           "{{instance}}")]),
        ("Answers", "timeseries", "ops", 8, "By class of the status code.",
         [("sum by (class) (rate(gpuledger_http_responses_total[5m]))", "{{class}}")]),
    ],
}

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(number, row, at):
    title, kind, unit, width, text, queries = row
    made = {
        "id": number,
        "title": title,
        "description": text,
        "type": kind,
        "datasource": SOURCE,
        "gridPos": {"x": at[0], "y": at[1], "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "options": {},
        "targets": [
            {"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": query, "legendFormat": legend or "__auto",
             **({"instant": True, "format": "table"} if kind == "table" else {})}
            for i, (query, legend) in enumerate(queries)
        ],
    }
    if kind == "timeseries":
        made["fieldConfig"]["defaults"]["min"] = 0
    return made


def board():
    panels, y = [], 0
    for title, rows in ROWS.items():
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False,
                       "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}, "panels": []})
        x, y = 0, y + 1
        for row in rows:
            if x + row[3] > WIDTH:
                x, y = 0, y + HEIGHT
            panels.append(panel(len(panels) + 1, row, (x, y)))
            x += row[3]
        y += HEIGHT
    return {
        "uid": "gpuledger",
        "title": "gpuledger",
        "description": "Needs the recording rules of manifests/monitoring.",
        "tags": ["gpu", "kubernetes"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "label": "Prometheus", "type": "datasource",
                                 "query": "prometheus"}]},
        "panels": panels,
    }


if __name__ == "__main__":
    print(json.dumps(board(), indent=2))

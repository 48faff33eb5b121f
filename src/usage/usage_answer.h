/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a Prometheus-compatible server answers to an instant query, as use of cards by pods.
 *
 * Source of the format: Prometheus, "HTTP API", instant queries:
 *   {"status":"success","data":{"resultType":"vector",
 *    "result":[{"metric":{"namespace":"ml","pod":"a"},"value":[1767225600.5,"3"]}]}}
 * Source of the labels: dcgm-exporter names the pod by `namespace` and `pod`. Prometheus, which has labels
 * of these names for what it scrapes, keeps the exporter's as `exported_namespace` and `exported_pod`
 * unless the scrape has `honorLabels`.
 *
 * It is outside data: whatever it says, nothing follows but an order of victims. Any thread.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USAGE_ANSWER_MAX ((size_t)16 << 20)
#define USAGE_PODS_MAX 20000
#define USAGE_CLOCK_MS INT64_C(120000) /* so far its clock may be from ours */

struct usage_reading {
    GHashTable *percents; /* "NAMESPACE/NAME" -> double *, 0 to 100: of the pod's busiest card */
    size_t n_series;
    size_t n_bad; /* pods of which a value is no percentage; they are not known */
    size_t n_cut; /* series of more than USAGE_PODS_MAX pods */
};

/* Of the answer to a question that was asked at that Unix time. Errors are GPULEDGER_ERROR_INVALID (it
 * cannot be understood, is an error, or says itself that something is missing in it) and _RANGE (it is
 * of another time). */
bool usage_answer_read(const char *text, size_t length, int64_t now_ms,
                       struct usage_reading *ret_reading, GError **error);
void usage_reading_clear(struct usage_reading *reading);

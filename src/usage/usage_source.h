/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asks a Prometheus-compatible server from time to time how busy the cards of pods are, and tells the
 * store which pods are idle (gate/idle_pods/idle_pods.h). A thread of its own; no lock of the store is held while
 * it waits for an answer. What it cannot learn it does not know: nobody is idle then. Failures are logged
 * and counted (COUNTER_USAGE), and the time of the last good answer is a gauge.
 */
#include "store/store.h"

#define USAGE_QUERY                                                                                \
    "max by (exported_namespace, exported_pod, namespace, pod) "                                   \
    "(max_over_time(DCGM_FI_DEV_GPU_UTIL[5m]))"
#define USAGE_TIMEOUT_MS INT64_C(20000) /* of one question */
#define USAGE_GAP_FACTOR 3              /* so many intervals after an answer it counts no longer */

struct usage_source;

struct usage_options {
    const char *url; /* http:// or https://, to which /api/v1/query is added */
    const char *query;
    const char *ca_file;    /* "": the system's */
    const char *token_file; /* "": none; read anew each time */
    int64_t interval_ms;
    int64_t below; /* percent */
    int64_t after_ms;
    int64_t timeout_ms;
};

/* Borrows the store and the texts until usage_source_free. */
struct usage_source *usage_source_start(const struct usage_options *options, struct store *store,
                                        GError **error);
/* Ends a question that is under way within about a second. NULL is ignored. */
void usage_source_free(struct usage_source *source);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carries out the plans that ConfigMaps of one namespace order (maintain/plan_order.h), one after the other, with
 * maintain/executor.h: a thread that looks for them every few seconds, as long as this replica serves.
 *
 * All that must not be forgotten is in the ConfigMap's annotation (maintain/plan_status.h), which is written before
 * each step, against the version that was read; whoever takes over finishes the step under way and goes on. Whoever
 * may write such a ConfigMap may have pods evicted; nobody else's namespace is looked at.
 */
#include "evict/permits.h"
#include "kube/api_client.h"
#include "verbs/leadership.h"

#include <gpuledger/dialect.h>

#define PLAN_ORDERS_MAX 64 /* the oldest; others are not looked at, which is logged */

struct plan_service;

struct plan_service_options {
    struct api_client *client; /* these are borrowed; the client is its own */
    struct cluster *cluster;
    struct store *store;
    const struct dialect_options *dialects;
    struct leadership *leadership; /* NULL: the only replica */
    struct permits *permits;
    const char *ns;
    int64_t interval_ms; /* 0: 5 s */
};

/* NULL with an error: no thread can be had. */
struct plan_service *plan_service_start(const struct plan_service_options *options, GError **error);
/* Waits for its thread; a plan under way is left to whoever serves next. NULL is fine. */
void plan_service_free(struct plan_service *service);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes Events about pods and Nodes (events.k8s.io/v1), from a thread of its own, and never more than people
 * can read: what is said again about a pod for the same cause is one Event whose series counts,
 * written anew after pauses that double; each cause and all of them together have a budget; what
 * is too much is dropped and counted (gpuledger_pod_events_total).
 */
#include "store/pod_event.h"
#include "kube/api_client.h"

struct events;

/* Zero means the default. */
struct events_options {
    int64_t repeat_ms;     /* the first pause: 20,000 */
    int64_t repeat_max_ms; /* the longest: 600,000 */
    unsigned burst;        /* Events of one cause at once: 10; all causes have four times that */
    int64_t refill_ms;     /* for one more of a cause: 6,000; for all causes a quarter of that */
    unsigned queue_max;    /* Events that wait to be written: 256 */
};

/* Borrows the client; options may be NULL. NULL with an error if no thread can be had. */
struct events *events_start(struct api_client *client, const struct events_options *options,
                            GError **error);

/* Waits for the call under way; what has not been written is dropped. NULL is fine. */
void events_free(struct events *events);

/* Any thread; never blocks. */
void events_post(struct events *events, const struct pod_event *event);

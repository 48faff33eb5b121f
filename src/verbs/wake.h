/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that filter has refused, and that nobody else may wake.
 *
 * A pod that ends makes kube-scheduler ask again at once, often before our own watch has shown the
 * end. The pod is refused once more, and in a quiet cluster nothing makes kube-scheduler ask a
 * third time: for minutes, or for ever. So when room has appeared since a pod was refused, and it
 * was not asked about again, one of its annotations is changed. That wakes a pod in every version
 * (its own update is an event that kube-scheduler always heeds).
 *
 * So it is for a pod for which preempt names nobody until those have ended whom it named before: if they
 * do not, somebody has to ask again.
 *
 * No storms: at most one change per pod and room, with a pause that doubles, and few in all.
 * A run is bounded, and so is what it does while it holds the store's lock, however many nodes and pods there are:
 * looks that have not ended go on in the next run, the one that ended the longest ago first.
 *
 * Own lock, never held together with the store's. Any thread.
 */
#include "store/cluster.h"

#define WAKE_ANNOTATION "gpuledger.io/woken"

/* Work: to pass over a node, to ask about one beside that, under one hold of the store's lock, in a run. */
#define WAKE_ASK_STEPS 32
#define WAKE_HOLD_STEPS 4096
#define WAKE_RUN_STEPS (UINT64_C(1) << 21)

struct wake;

struct wake *wake_new(void);
void wake_free(struct wake *wake);

/* Every node was refused, when the ledger's count of what was freed (ledger_freed) was `freed`. */
void wake_note_refusal(struct wake *wake, const struct pod_view *pod, uint64_t freed);

/* preempt waits for the end of others, for that long. Of a pod that is not remembered nothing is noted. */
void wake_note_awaited(struct wake *wake, const char *uid, int64_t after_ms);

/* The pod has found a node, or asks for no GPU. */
void wake_forget(struct wake *wake, const char *uid);

/* Wakes those for whom there is room now; one thread, from time to time. Returns how many. */
unsigned wake_run(struct wake *wake, struct store *store, struct cluster *cluster);

/* What was done, ever, and the most of it under one hold of the store's lock: for tests, by the thread that runs it. */
struct wake_work {
    uint64_t steps, most_at_once;
};
struct wake_work wake_work(const struct wake *wake);

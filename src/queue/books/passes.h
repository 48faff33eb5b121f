/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods filter has let pass lately, and on which nodes: a hint for bind, whose call of such a
 * pod follows kube-scheduler's own sums. It never stands for what the pod's own spec says, since
 * who can forge a call of bind can forge one of filter. Another book of the kind has the nodes for which the
 * last call of filter about a pod had no work left (store_unsearched).
 *
 * Bounded in pods and nodes, in turns by namespace: the one that has most loses its oldest. Lost
 * with the process and at a takeover; then everything is simply asked.
 *
 * Own lock; may be taken under the store's, and no other is taken under it. Any thread.
 */
#include <gpuledger/ledger.h>

#define PASSES_PODS_MAX 4096
#define PASSES_NODES_MAX (1U << 20) /* of all pods together; 4 bytes each */
/* kube-scheduler sends the bind within seconds, or after what its Permit plugins wait for. */
#define PASSES_MS (5 * 60 * 1000)

struct passes;

struct passes *passes_new(void);
void passes_free(struct passes *passes); /* NULL is ignored */

/* What stands for a node. Two nodes with one mark are taken for each other, which costs a hint its
 * worth and nothing else. */
static inline uint32_t passes_mark(const struct node *node)
{
    return (uint32_t)((uintptr_t)node >> 4);
}

/* Where it has passed, as marks. None: the pod asks for no GPU, and any node will do. Replaces what was
 * known of the pod. */
void passes_note(struct passes *passes, const char *uid, const char *ns, const uint32_t *marks,
                 size_t n, int64_t now_ms);

/* It has been bound. */
void passes_forget(struct passes *passes, const char *uid);
void passes_forget_all(struct passes *passes);

/* The pod's marks (GUINT_TO_POINTER) -> the places at which they were noted, from 1 on; the caller's. NULL: none. */
GHashTable *passes_marks(struct passes *passes, const char *uid, int64_t now_ms);

/* `node` NULL: on any. */
bool passes_has(struct passes *passes, const char *uid, const struct node *node, int64_t now_ms);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes that are being cleared for pods: for each pod the last answer of preempt. kube-scheduler ends whom
 * that names right after the answer, and may ask about the pod again before the watch has shown that they
 * end; then nobody else is to end. Source: kube-scheduler 1.20 to 1.36, pkg/scheduler/framework/preemption.
 *
 * An answer is known while its pod waits. From when preempt first goes by it, it counts for CLEARING_MS,
 * so that a pod whose victims never end is not kept from others for longer. Bounded in pods, nodes and victims
 * together: the namespace for whose pods most is known loses its oldest. It is lost at a start and at a
 * takeover; then preempt answers as if it were asked for the first time. Guarded by the store's lock.
 */
#include "wire/preemption.h"

#define CLEARINGS_MAX 65536 /* pods, nodes and victims, and their names in CLEARING_UNITs */
#define CLEARING_UNIT 64    /* bytes; whoever calls says how long names are */
#define CLEARING_MS 5000

/* The answer for one pod. Does not change, but for since when preempt goes by it. */
struct clearing {
    gatomicrefcount references;
    char *uid, *ns; /* the pod's */
    struct preemption_node *nodes;
    size_t n_nodes, weight; /* what it takes of CLEARINGS_MAX */
    int64_t since_ms;       /* monotonic, under the lock: preempt goes by it; 0: it has not yet */
    const char **uids;      /* of all nodes */
    char *texts;            /* these and the names */
    GList *link;            /* in its namespace's queue */
};

/* Copies all that it is given; of the nodes the names and the UIDs. */
struct clearing *clearing_new(const char *uid, const char *ns, const struct preemption_node *nodes,
                              size_t n_nodes);
struct clearing *clearing_ref(struct clearing *clearing);
void clearing_unref(struct clearing *clearing); /* NULL is ignored */
typedef struct clearing clearing;               /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(clearing, clearing_unref)

/* One that counts no longer at that moment; monotonic, like all times here. */
bool clearing_is_over(int64_t since_ms, int64_t now_ms);

/* As a record has one that counts, so many of its nodes: {"uid":"u1","nodes":{"n1":["u2","u3"]}} */
void clearing_encode(struct json_writer *writer, const struct clearing *clearing,
                     const struct preemption_node *nodes, size_t n_nodes);
/* NULL, with an error: it cannot be understood. */
struct clearing *clearing_decode(struct json_arena *arena, const cJSON *object, GError **error);

struct clearings;

struct clearings *clearings_new(void);
void clearings_free(struct clearings *clearings);
/* Replaces what is known of the pod. */
void clearings_put(struct clearings *clearings, struct clearing *take_clearing);
void clearings_forget(struct clearings *clearings, const char *uid);
void clearings_clear(struct clearings *clearings);
/* NULL: nothing is known of the pod. Borrowed. */
struct clearing *clearings_get(const struct clearings *clearings, const char *uid);
/* Of all together, as CLEARINGS_MAX counts. */
size_t clearings_weight(const struct clearings *clearings);

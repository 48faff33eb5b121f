/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods of a group in kinds: pods that any node takes alike. The one that filter is asked about is a
 * kind of its own, since kube-scheduler has named the nodes that are left for it; of the others it is read
 * here where they may go. Under the store's lock.
 */
#include "store/feasibility.h"
#include "verbs/gang/gang_places.h"

/* What takes as long as some nodes that are asked about, in these. */
#define VALUES_PER_NODE 128 /* values in constraints that are compared */

struct gang_kind {
    const struct request *request;
    const struct constraints *constraints; /* NULL: of the one that is asked about */
    int64_t priority;
    int64_t size;                /* thousandths of cards that a pod asks for */
    uint64_t values;             /* in the constraints, and in what else of them takes time */
    uint32_t n;                  /* pods */
    struct feasibility question; /* of one pod of the kind after the other */
    void *own;                   /* the caller's */
};

/* A member as it is asked about: the one that is asked about as filter was told, the others as the watch
 * has shown them. */
struct gang_member_view {
    const char *uid;
    const struct pod_rules *rules; /* NULL: of the one that is asked about */
    const struct request *request;
    struct pod_view pod;
    struct gang_kind *kind;
    size_t at; /* in the caller's list */
};

struct gang_kinds {
    const struct gang_places_query *query;
    struct gang_kind all[GANG_KINDS_MAX + 1];
    size_t n;
    bool asked;    /* one of them is of the pod that filter is asked about */
    uint64_t work; /* done so far, in nodes that were asked about */
};

/* Of which pods it can be said where they may go, and that are of no kind too many; until GANG_WORK_MAX is
 * reached. Array of struct gang_member_view, in the order of the UIDs, which must outlive it; free with
 * g_array_unref. The kinds stay where they are. */
GArray *gang_kinds_sort(struct gang_kinds *kinds, const char *const *uids, size_t n);
void gang_kinds_clear(struct gang_kinds *kinds); /* but for what is the caller's */

static inline bool gang_kinds_are_spent(const struct gang_kinds *kinds)
{
    return kinds->work > GANG_WORK_MAX;
}

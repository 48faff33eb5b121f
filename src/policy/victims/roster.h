/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods of a what-if node as the search for victims reads them: close together, in the
 * order in which it spares them, and with those told who hold the same. It is made once for many searches.
 */
#include "policy/what_if.h"

#define SEVERAL_CARDS (-2)

struct seat {
    struct allocation *allocation; /* one of the what-if node's */
    const char *uid;               /* its UID, beside those of the next seats */
    int64_t priority, created_s;
    int64_t started_s; /* INT64_MAX: not yet, which is later than all that have */
    uint32_t kind;     /* place in `kinds` */
    guint place;       /* in the what-if node's list, as it was when the roster was made */
    guint uid_hash;    /* g_str_hash */
    int16_t
        card; /* the only one that it is on; CARD_UNKNOWN: it counts on every one; SEVERAL_CARDS */
    int8_t order; /* enum victim_order of its class */
    bool terminating : 1, confirmed : 1;
    bool stays : 1; /* no preemption ends it (may_end.h) */
    bool
        unit : 1; /* POD_TIE_UNIT: it ends if kube-scheduler, which knows its group, names it, and else not */
};

/* Pods that hold the same of the same card and of the node, ask for the same and are of one class. Not
 * all who do are of one kind. */
struct seat_kind {
    struct allocation *example;
    const struct pod_facts *facts; /* its */
    struct host host;              /* likewise */
    uint32_t n;
    bool
        alike; /* one share of one card: whose end frees just what another one's does is easily told */
};

struct roster {
    uint32_t n, n_kinds;
    struct seat *seats; /* who is being deleted last, else the dearest first; the oldest of those */
    struct seat_kind *kinds;
    char *uids;
};

/* Borrows the what-if node's allocations, which must not be changed meanwhile. */
struct roster *roster_new(const struct what_if *what_if);
void roster_free(struct roster *roster); /* NULL is ignored */
typedef struct roster roster;            /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(roster, roster_free)

/* When kube-scheduler takes it to have started, Unix time: of a pod that kubelet has not admitted yet it says now, which
 * is INT64_MAX here. Source: kubernetes/kubernetes 1.37.2, pkg/scheduler/util/utils.go, GetPodStartTime. */
int64_t allocation_start(const struct allocation *allocation);

/* Negative: the first has run for longer, or was created earlier where neither has. */
int seat_compare_age(const struct seat *one, const struct seat *other);

/* Whether those of one kind hold the same of the same card as those of the other and are of one class,
 * whatever they have of the node. False also where telling takes longer. */
bool seat_kinds_hold_same(const struct seat_kind *one, const struct seat_kind *other);

/* What all of them have of the resource, in thousandths; INT64_MAX: not known of each. */
int64_t roster_amount(const struct roster *roster, const char *resource);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods on their way from filter to bind. kube-scheduler asks about the next pod before it has told us
 * where the last one goes, so the ledger alone would send tens of equal pods to one node whose plugin
 * serves one at a time. So it is remembered, for HINT_LASTS_MS, to which node a pod will be bound: the
 * one that prioritize preferred, or the only one that filter let pass; and of a bind that waits there,
 * for as long as it may. Beside it stands which nodes filter was asked about, so that a bind can
 * tell whether it would wait while another of them takes its pod at once.
 *
 * A hint steers: filter leaves a node out for it only while another one is left, bind books by the ledger
 * alone. Only those whose binds wait for a node refuse others: what they will leave no room for would
 * wait in vain. Who has none, or whose hint is lost, waits as long as the ledger says. One
 * namespace has at most HINTS_NAMESPACE_MAX of them, so that pods that are made and never bound turn
 * others away from few nodes only.
 *
 * A pod with volumes or devices that kube-scheduler sees to before it calls bind (struct pod_view, binds_late)
 * may come after minutes. While kube-scheduler waits for those, its own sums count the pod on its node for all
 * others, whatever their priority. So the hint of such a pod lasts as long as that may take, and others find the
 * node with the pod placed (nominees.h): it is kept.
 *
 * What is known here follows from the calls that are recorded and their moments, so that a replay knows
 * the same. Where a record's file ends all of it is forgotten but what is kept. Guarded by the store's lock.
 */
#include <gpuledger/ledger.h>

#define HINT_LASTS_MS 2000
#define HINTS_MAX 4096
#define HINTS_NAMESPACE_MAX 2048 /* as many as binds may wait by default */
/* How often a bind that waits looks for another node, and how many it asks about then. */
#define HINT_LOOK_MS 1000
#define HINT_LOOKS_MAX 512

/* What a bind that is turned away loses: kube-scheduler asks about its pod again after a second at the
 * earliest, and looks once in a second whether that is over. */
#define HINT_BACK_MS 1500

struct hint {
    char *uid, *ns;
    char *node;              /* NULL: not known yet */
    struct request *request; /* owned */
    int64_t until_ms;        /* monotonic */
    uint64_t number;         /* in the order in which they were noted */
    uint8_t *asked;          /* a bit for each place of a node that filter was asked about */
    uint32_t n_asked;       /* bits */
    int64_t look_ms;         /* when to look again */
    bool waits;              /* its bind has come, and waits there */
    bool kept;               /* its room is kept from all others */
};

struct hints;

struct hints *hints_new(void);
void hints_free(struct hints *hints);

/* Ends those whose time is over. What those who waited in vain, now or before, leave is free in the
 * ledger; returns whether that is anything. */
bool hints_end(struct hints *hints, struct ledger *ledger, int64_t now_ms);

struct hint_about {
    const char *uid, *ns;
    const char *node; /* NULL: not known yet */
    const struct request *request;
    int64_t until_ms;
    bool kept; /* only with a node */
};

/* The pod goes there; what is known of it besides stays. */
struct hint *hints_note(struct hints *hints, const struct hint_about *about);
/* filter was asked about the node that has the place. */
void hint_ask(struct hint *hint, const struct ledger *ledger, uint32_t place);
bool hint_has_asked(const struct hint *hint, uint32_t place);

/* NULL: there is none. */
struct hint *hints_find(const struct hints *hints, const char *uid);
void hints_forget(struct hints *hints, const char *uid);
/* But those that are kept. */
void hints_forget_all(struct hints *hints);

/* The pod, on its way to the node, has been booked there; its hint is over. */
void hints_book(struct hints *hints, const char *uid, const char *node, int64_t now_ms);
/* Whether all who are on their way to the node will be booked there sooner than one that is turned away
 * would come back, if it goes on as it did between the last two. */
bool hints_end_soon(const struct hints *hints, const char *node, int64_t now_ms);

/* Those on their way to the node that are kept, the first to pass first; NULL: none. */
const GPtrArray *hints_kept_on(const struct hints *hints, const char *node);
bool hints_keep(const struct hints *hints, const char *uid);
void hints_copy_kept(struct hints *hints, const struct hints *from);
/* All that are kept, the first to pass first: array of struct hint, borrowed. Free with g_ptr_array_unref. */
GPtrArray *hints_list_kept(const struct hints *hints);

/* Those on their way to the node that are not kept, in order; NULL: none. */
const GPtrArray *hints_of(const struct hints *hints, const char *node);
/* Flags the nodes to which somebody is on the way (ledger_flag). */
void hints_flag(const struct hints *hints, struct ledger *ledger);

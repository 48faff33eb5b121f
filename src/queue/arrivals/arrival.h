/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the order of arrival is made of, for the files of this folder alone. */
#include "queue/arrivals/arrivals.h"
#include "base/roll.h"

/* By what is told whether a place, or that there is none, has to be looked at again. One that has passed
 * never comes back: whatever makes the size smaller counts as freed. */
struct arrival_stamp {
    uint64_t freed, places, kept;
    size_t size; /* of the ledger or of a node */
};

struct arrival {
    struct roll_entry entry;
    struct arrivals *arrivals; /* it is one of these */
    char *uid;
    char *ns;
    char *title; /* "NAMESPACE/NAME" */
    char *scheduler;
    char *controller;        /* as in the pod's view, or NULL */
    struct pod_facts *facts; /* what kube-scheduler adds up; a reference, or NULL */
    bool plain, grouped;
    bool asked;
    int64_t asking_ms; /* until when it counts as asking; see struct queue_entry */
    int64_t looked_ms;
    char *created; /* RFC 3339 in UTC, so that text sorts as time; or NULL */
    uint64_t number;
    int64_t priority;
    const struct request *request;
    const struct arrival *like; /* the first of a query's older ones that asks for the same */
    guint at;                   /* its place among them */
    int64_t until_ms;           /* how long others leave room for it; 0: nobody has had to yet */
    struct reservation *place;  /* where it will go, or NULL */
    struct arrival_stamp
        seen;            /* its node, or all of them, when the place was last looked for or at */
    int64_t hopeless_ms; /* when it was seen that no node that is there could ever take it; or 0 */
};

struct arrivals {
    GSequence *in_order;
    GHashTable *places;     /* uid -> its GSequenceIter */
    struct roll roll;       /* all of them, for images */
    GHashTable *schedulers; /* name of one that has asked -> namespace that brought it, or NULL */
    GPtrArray *placed;      /* those with a place, the oldest first; borrowed */
    uint64_t number;
    uint64_t n_changes; /* of places, and 1: no stamp is 0 that was ever made */
};

/* By age: creation time as text, then number. */
gint arrival_compare_age(const char *created, uint64_t number, const char *other_created,
                         uint64_t other_number);
gint arrival_compare(gconstpointer a, gconstpointer b, gpointer data);
/* Before anything of it changes that an image has (struct queue_entry); an image has those with a place
 * from its begin. */
void arrival_change(struct arrival *arrival);
/* It has a place from now on, which is set. */
void arrival_enlist_place(struct arrival *arrival);
/* It has none from now on. */
void arrival_drop_place(struct arrival *arrival);
/* Of the node of the place, or of all, as they are. */
struct arrival_stamp arrival_stamp_of(const struct arrivals *arrivals, const struct ledger *ledger,
                                      const struct nominations *nominations,
                                      const struct reservation *place);
bool arrival_stamps_agree(const struct arrival_stamp *a, const struct arrival_stamp *b);

/* --- waited_for.c --- */

void arrivals_look_for_excuses(struct arrivals *arrivals, const struct arrivals_query *query);
/* It asks, or cannot, and its time has not passed. */
bool arrival_is_waited_for(const struct arrival *arrival, const struct arrivals_query *query);
/* How many of each namespace wait. Free with g_hash_table_unref. */
GHashTable *arrivals_count_waiting(const struct arrivals *arrivals,
                                   const struct arrivals_query *query, guint *ret_all);

/* Of `n` places each namespace may have half, and what the pods of others leave. */
struct arrival_shares {
    GHashTable *waiting, *given; /* namespace -> number */
    guint all;
    int64_t n;
};

/* False: the namespace has all that it may have. */
bool arrival_take_share(struct arrival_shares *shares, const struct arrival *arrival);
/* Who has to be left room. Free with g_ptr_array_unref. */
GPtrArray *arrivals_find_older(struct arrivals *arrivals, const struct arrivals_query *query,
                               GHashTable *waiting, guint all);

/* --- coming.c --- */

/* How the pod finds the nodes; clear it with nominees_clear. */
struct nominees arrival_look_as(const struct arrivals_query *query, const struct arrival *arrival);

/* One node, as the pod that asks finds it, and as older ones do, for whom other room is kept. Those for
 * whom the same is share what they find. */
struct arrival_views {
    const struct arrivals_query *query;
    const struct node *node; /* as it is */
    const struct node *seen; /* by the pod that asks */
    GArray *others;          /* struct nominees; NULL: all find it alike, as mostly */
};

struct arrival_views arrival_views_of(const struct arrivals_node *node,
                                      const struct arrivals_query *query);
void arrival_views_clear(struct arrival_views *views);
/* Valid until the views are cleared. */
const struct node *arrival_view_of(struct arrival_views *views, const struct arrival *arrival);
/* The node is closed to the pod, whatever is free there. */
bool arrival_is_shut_out(const struct arrival *arrival, const struct node *node,
                         const struct arrivals_query *query);
/* Whether the node, as the pod finds it, would take it now. */
bool arrival_may_come(const struct arrival *arrival, const struct node *node,
                      const struct arrivals_query *query);
/* From now on its time passes. */
void arrival_begin_hold(struct arrival *arrival, const struct arrivals_query *query);

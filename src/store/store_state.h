/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a store is made of, for store*.c alone. */
#include "store/changes/node_changes.h"
#include "queue/pod_rules.h"
#include "queue/strays.h"
#include "queue/turns/turns.h"
#include "queue/sleepers.h"
#include "store/store.h"

#include <stdatomic.h>
#include <string.h>

struct pending {
    struct request *request;
    int64_t priority;
    uint32_t generation;
    int64_t
        since_ms; /* monotonic, since when it has waited to be placed; 0: it does not, being gated */
    char *controller, *created, *nominated_node; /* as in the pod's view, or NULL */
    bool terminating;
    char *could_be_on; /* store_hopes.c: a node, or NULL */
    bool unlooked;     /* that may have changed since */
};

/* A value model that is being made. */
struct outlook_draft {
    struct demand *demand; /* NULL: there is none */
    struct supplies *supplies;
    bool dropped; /* what was learned is another thing by now */
};

struct store {
    struct store_options options;
    pthread_mutex_t mutex;
    struct sleepers sleepers; /* those in store_wait */
    atomic_uint n_waiting; /* threads that wait for the mutex */
    struct ledger *ledger;
    struct demand *demand;
    struct outlook_draft draft; /* images/store_outlook.c */
    bool apart;                 /* models are made by a thread of their own */
    bool bare;                  /* and decisions go without one until it has made the next */
    GHashTable *expecting;      /* names of nodes whose own policy goes by the demand */
    bool expected;              /* some decision went by the demand */
    struct demand *told; /* the same as readers see it, worked out once for many; or NULL */
    GHashTable *pending; /* uid -> struct pending *: pods that ask for a GPU and have no node */
    bool any_unlooked;   /* of `pending` */
    GHashTable *shapes;  /* node name -> uint64_t *, see store_hopes.c */
    GHashTable *rules;   /* uid -> struct pod_rules *: all pods that have no node */
    struct arrivals *arrivals; /* those of `pending`, in order; borrows their requests */
    struct nominations *nominations; /* those with room kept for them; borrows, too */
    struct clearings *clearings;     /* whom preempt has named last for those of `pending` */
    struct hints *hints; /* pods on their way from filter to bind */
    struct gangs *gangs;
    struct node_books *ratings;
    struct node_books *verdicts;
    struct passes *unsearched;   /* as store_unsearched says */
    struct stand_ins *stand_ins; /* nodes, as who has preempted last has seen them */
    struct quotas *quotas;
    bool was_counting; /* the last decision was made before all was counted that they limit */
    struct pod_facts_pool *facts; /* of the pods with allocations */
    struct budgets *budgets;
    GHashTable *
        doubted; /* set of UIDs: of confirmed allocations whose pods a list has shown without a node */
    GQueue
        doubts; /* of char *: those to be asked about, in turn; who is doubted no more may be among them */
    GHashTable *named;   /* uid -> char *: cards that a pod's annotations name and that it is not on */
    struct part_set parts;   /* what else is remembered, by the table */
    struct changes *changes; /* nodes that are being changed */
    struct strays *strays;   /* that are stray */
    struct turns *turns;     /* of those that are awaited, where their times must be in order */
    struct sealing *sealing; /* pods by their seals */
    GHashTable *marks;       /* node name -> struct plan_mark * */
    struct {
        void *own;
        void (*free)(void *own);
    } kept[FEEDS_MAX]; /* by kinds (kinds/kind.h) */
    uint32_t generation[FEEDS_MAX];
    bool synced[FEEDS_MAX];
    GHashTable *claim_views;  /* node name -> hash of the claims that its annotation shows, not 0 */
    char *claims_trouble;     /* why the claims cannot be read, or NULL */
    char *trouble[FEEDS_MAX]; /* why it cannot be read, or NULL */
    char *unwatched[FEEDS_MAX]; /* why no watch of it lives, or NULL */
    bool listing[FEEDS_MAX];    /* a list has begun that has not ended */
    bool spared[FEEDS_MAX];     /* and its end sweeps nothing */
    atomic_bool unsound; /* kept sums were found to differ */
    struct lock_meter meter;   /* without functions: nobody measures */
    struct observer *observer; /* NULL: none */
    enum trust replayed_trust;
    int64_t replayed_change_ms;    /* since when the next node is being changed; 0: clocks say */
    const struct moment *replayed; /* NULL: clocks say when it is */
};

/* Of parts whose state the store itself is (gate/part.h): `start`, and `encode` of an image that is JSON. */
static inline void *store_as_part(const struct part_base *base, const void *settings)
{
    return base->store;
}

static inline void store_write_text(struct json_writer *writer, void *image)
{
    json_raw(writer, image, strlen(image));
}

/* As store_pending, for those. */
static inline const struct request *store_request(const struct store *store, const char *uid)
{
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);

    return pending ? pending->request : NULL;
}

/* Under the lock: now. */
struct moment store_clock(const struct store *store);

/* kinds/objects.c, under the lock: what a list has not named goes. */
void store_sweep_objects(struct store *store, enum feed feed);

/* Under the lock: quotas leave more than before, on whatever node. */
void store_note_quotas(struct store *store);

/* Under the lock: it is gone, whatever its state. False: it was not known. */
bool store_forget_pod(struct store *store, const char *uid);

/* coming/coming.c, under the lock: a pod that may be nominated has been noted; a decision is made. */
void store_note_coming(struct store *store, const char *uid, int64_t now_ns);
void store_begin_coming(struct store *store, const struct moment *moment);

/* coming/store_claims.c, under the lock: the Node's annotation shows these claims; NULL: it is not there. `take_claims`
 * is what it says; NULL: nothing that counts. */
void store_note_claim_view(struct store *store, const char *node, const char *text,
                           GPtrArray *take_claims);
/* The latter, without the lock: what cannot be read, with an error, changes nothing. */
GPtrArray *store_read_claim_view(const struct store *store, const char *text, GError **error);

PART_ROW(coming, 20); /* coming/coming_told.c: pods on their way */
/* coming/claims_told.c, under the lock: those of a node, NULL for none; or all of them, a struct claim_sheet *, of a
 * store, for store_change_part. True: something has changed. */
PART_ROW(claims, 4);
bool store_set_claims(struct store *store, const char *node, GPtrArray *take_claims);
bool store_take_sheet(void *self, void *sheet);

/* store_hopes.c, under the lock: the pod waits, or asks for something else; the node has changed, or is gone. */
void store_hope_pod(struct store *store, const char *uid);
void store_hope_groups(struct store *store); /* some have got enough pods, or too few */
void store_hope_node(struct store *store, const char *name);

/* images/store_outlook.c, under the lock: a node's own policy, or NULL; what was learned is another thing, and the
 * next call works out what follows. */
void store_note_policy(struct store *store, const char *name, const struct policy *policy);
void store_drop_outlook(struct store *store);
/* store_learn, under the lock. */
void store_take_lesson(struct store *store, const struct demand *demand, bool bare);

/* Before the store has read of the pod what else it says: which of its promises are stray. */
void store_note_promises(struct store *store, const struct pod_view *pod);
/* Under the lock: the pod's object is gone, and its promises with it. */
void store_drop_promises(struct store *store, const char *uid);

/* The same, but nobody said that it has ended: kubelet may still be about to start it. */
void store_miss_pod(struct store *store, const char *uid);

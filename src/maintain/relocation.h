/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods of a cluster to move so that a pod finds room, or a card or node is empty: plan/plan.h with
 * what the ledger alone does not know. Everything is found out on copies of the store, and what is found
 * is tried once more as a whole with the question that the verbs ask (store/feasibility.h): nothing is
 * changed anywhere. One thread.
 */
#include "explain/card_place.h"
#include "evict/pauses.h"
#include "evict/permits.h"
#include "json/json.h"
#include "store/cluster.h"
#include "wire/plan_mark.h"

#define RELOCATION_NODES_MAX 50 /* whose pods are looked at, for a pod, a group or a place */
#define RELOCATION_LENDERS_MAX                                                                     \
    256 /* the same where what is fragmented is the goal: any node takes them */

/* Either `admit`, `group`, `empty` or `less`. */
struct relocation_query {
    struct store *store;
    struct cluster *cluster;      /* asked for the pods of nodes */
    const struct pod_view *admit; /* bound already: nothing is to be done */
    const char *group_ns, *group; /* pods that come whole or not at all (gang/gangs.h) */
    const struct card_place *empty;
    int64_t
        less; /* thousandths of a GPU by which what is fragmented is to go down; 0: that is not it */
    int64_t
        fragmented_most; /* what that came to when it was first looked; -1: now is the first time */
    uint32_t moves_max;  /* these as in struct plan_query */
    uint32_t per_owner;
    uint32_t per_node;
    uint32_t per_namespace; /* moves; 0: any number */
    const char *const
        *only; /* "NAMESPACE/NAME" of those that may be moved; ends with NULL. NULL: all */
    /* A set of UIDs: these pods of `only`, and no others, just end, wherever their successors then find
     * room. Only with `admit`. NULL: pods move. */
    GHashTable *ends;
    const struct pauses *paused;   /* of controllers whose pods stay; NULL: none */
    const struct permits *permits; /* how long a pod has to have run; NULL: it does not matter */
    bool force;                    /* pods that nobody makes again may be moved, too */
};

#define RELOCATION_LEFT "left by " /* the pod's UID: so begins the UID of a room for nobody */

struct relocation_step {
    char *ns, *name, *uid;
    char *from, *frees;     /* node, and what of it: "card 1 (8GiB)" */
    char *to, *takes;       /* where its successor finds room; NULL: it just ends */
    char *owner_kind;       /* NULL: nobody makes a successor */
    char *owner;            /* its UID, likewise */
    struct kept_room *room; /* what is to be kept on `to` for that; NULL likewise */
    struct kept_room
        *left; /* on `from`, so that the successor does not come back; NULL: it does not matter */
    unsigned overlooked; /* of the pod: bits of enum overlooked */
};

/* Where a pod of the group then goes. */
struct relocation_seat {
    char *ns, *name, *node, *cards;
    struct kept_room
        *room; /* what is to be kept there until it has a place; all of the group find it free */
};

/* A pod that was looked at and may not be moved. */
struct relocation_stay {
    char *ns, *name, *node, *why;
};

struct relocation {
    char *goal;    /* "room for ml/big (8GiB of one card)" */
    bool reached;  /* after these steps; without any: as it is */
    bool fewest;   /* it is certain that fewer do not do, or, if it is not reached, that none do */
    GArray *steps; /* struct relocation_step, in order */
    GArray *stays; /* struct relocation_stay */
    GArray *seats; /* struct relocation_seat: of the group that is to find room, if it is reached */
    char *ns, *name;         /* of the pod to admit, or NULL */
    char *uid;               /* likewise; NULL: it need not exist */
    char *node, *cards;      /* of the pod to admit, if it is reached */
    struct kept_room *room;  /* what is to be kept there, likewise, if it takes moves */
    char *why;               /* it is not reached; for people */
    bool measured;           /* the goal is less that is fragmented; in thousandths of a GPU: */
    int64_t fragmented;      /* now */
    int64_t fragmented_then; /* after the steps */
    int64_t fragmented_most; /* to be reached; less than 0: there is not so much */
    guint n_nodes;           /* that might take the pod, or lend room */
    guint n_looked;          /* of these, whose pods were looked at */
};

/* NULL, with an error: the pod asks for no GPU, the place is not known, pods cannot be read. */
struct relocation *relocation_find(const struct relocation_query *query, GError **error);
struct relocation *relocation_new(void);
void relocation_free(struct relocation *relocation); /* NULL is ignored */
typedef struct relocation relocation;                /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(relocation, relocation_free)

/* What the step after this one waits for; free with g_free. */
char *relocation_awaits(const struct relocation_step *step);

#define RELOCATION_PLACES_MAX 4
/* The nodes that the next step is about, and those of the pod to admit; ends with NULL. Borrowed. */
void relocation_places(const struct relocation *plan, const char *ret_nodes[RELOCATION_PLACES_MAX]);

/* `moved`: so many moves have been made before; `log`: what was done in this run, NULL: none is told of. */
struct step_log;
void relocation_encode(struct json_writer *writer, const struct relocation *plan, guint moved,
                       const struct step_log *log);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the views need of nodes and pods, copied under the store's lock, a few nodes at a time, and
 * formatted after it. Any thread.
 */
#include "store/store.h"

struct share_copy {
    int32_t card; /* index, or CARD_UNKNOWN */
    int32_t container;
    int32_t core;    /* thousandths */
    int64_t memory;  /* bytes */
    struct mig_place place; /* of the instance that it is; size 0: it is none, or nobody says where */
    int32_t devices; /* of the pool `device` */
    char *device;    /* NULL: a share of a card */
};

struct pod_copy {
    char *uid, *ns, *name;
    const struct dialect *dialect;
    enum allocation_state state;
    bool assigned, waiting;
    int64_t since_ns; /* Unix time at which it was placed; 0: not known */
    int64_t gpus;     /* that it holds at most at once (quota/holding.h), in SHARE_UNIT */
    uint32_t n_shares;
    struct share_copy *shares;
    struct pod_facts *facts; /* a reference, or NULL */
};

struct node_copy {
    char *name;
    const struct dialect *dialects[NODE_DIALECTS_MAX];
    int32_t n_dialects;
    bool present, paused, cordoned;
    int64_t memory_unit;
    int64_t unplaced_memory;
    int64_t fragmented; /* fragmentation_of */
    int32_t n_cards;
    int32_t n_pools;
    struct card *cards;
    struct pool *pools;
    uint32_t n_pods;
    struct pod_copy *pods; /* by namespace and name */
};

/* Reads nodes that share GPUs or hold pods that do, in order of name (store/node_walk.h); or the one. */
struct node_reader;
#define node_reader_new(store, name, with_pods) node_reader_new_by(store, name, with_pods, __func__)
struct node_reader *node_reader_new_by(struct store *store, const char *name, bool with_pods,
                                       const char *who);
void node_reader_free(struct node_reader *reader);
typedef struct node_reader node_reader; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(node_reader, node_reader_free)

/* To begin after the node of that name, known or not; before the first node_reader_next. NULL: at the first. */
void node_reader_begin_after(struct node_reader *reader, const char *name);
/* Whether enough pods were seen to say what is fragmented. */
bool node_reader_foresees(const struct node_reader *reader);
/* The next few: struct node_copy, the reader's own until the next call. NULL: there are no more. */
const GArray *node_reader_next(struct node_reader *reader);

/* The copy of a pod by name, without facts, and that of its node's name, both the arena's; false: not
 * known. Looks at all nodes. */
bool pod_copy_find(struct store *store, struct json_arena *arena, const char *ns, const char *name,
                   struct pod_copy *ret_pod, const char **ret_node);

/* Whether a share is on the card; `card` NULL: on none that the node has. Never on two. */
bool share_copy_is_on(const struct node_copy *node, const struct share_copy *share,
                      const struct card *card);

/* What is left of a card. */
int64_t card_copy_free(const struct node_copy *node, const struct card *card);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the views need of nodes and pods, copied under the store's lock and formatted after it.
 * Any thread.
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
    GArray *pods; /* struct pod_copy, by namespace and name */
};

/* Nodes that share GPUs or hold pods that do, by name; all, or the one. Free with g_array_unref. */
GArray *node_copies(struct store *store, const char *name, bool with_pods);

/* Of these, those that come after the name `after` (NULL: from the first on), with pods, at most `max`
 * of them, read a few at a time (store/node_walk.h). `ret_known`: whether enough pods were seen to say
 * what is fragmented. Free with g_array_unref. */
GArray *node_copies_after(struct store *store, const char *after, guint max, bool *ret_known);

/* The copy of a pod by name and that of its node's name (free with g_free); false: not known. */
bool pod_copy_find(struct store *store, const char *ns, const char *name, struct pod_copy *ret_pod,
                   char **ret_node);
void pod_copy_clear(struct pod_copy *pod);

/* Whether a share is on the card; `card` NULL: on none that the node has. Never on two. */
bool share_copy_is_on(const struct node_copy *node, const struct share_copy *share,
                      const struct card *card);

/* What is left of a card. */
int64_t card_copy_free(const struct node_copy *node, const struct card *card);

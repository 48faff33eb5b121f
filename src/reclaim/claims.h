/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The claims on all Nodes, and how each stands, as the store has them at one moment: copies, for who wants
 * the lock no longer.
 */
#include "store/store.h"

enum claim_state {
    CLAIM_WAITS, /* for those that end, or for the pod to be bound */
    CLAIM_BOUND, /* the pod has come */
    CLAIM_GONE,  /* there is no such pod */
    CLAIM_HALF,  /* one of the pod's group is gone; claims_read leaves that to evictions_settle */
    CLAIM_LAPSED,
    CLAIM_NODELESS, /* the Node is gone */
    CLAIM_STALE,    /* the pod has one on another Node */
    CLAIM_UNSURE,   /* its namespace has come to its min otherwise, or its quota has changed */
};

struct claim_row {
    char *node;
    struct room_claim *claim;
    enum claim_state state;
    char *ns, *name; /* of the pod; NULL: gone */
    guint n_left;    /* of those that end, who still hold something */
};

/* Array of struct claim_row; takes the lock. */
GArray *claims_read(struct store *store);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What would be if: a node outside any ledger, like one that is in it, from which allocations are
 * taken away and to which others are added. Nobody else sees it, so no lock is needed once it is
 * made.
 */
#include <gpuledger/placement.h>

struct what_if {
    struct node *node;      /* as it would be */
    GPtrArray *allocations; /* copies of all that were on the node, those taken away included */
    guint removed_at;       /* what_if_without's guess */
    char *block;            /* in which the first n_copied of them lie */
    guint n_copied;
    size_t block_size;
};

struct what_if *what_if_new(const struct node *node);
void what_if_free(struct what_if *what_if); /* NULL is ignored */
typedef struct what_if what_if;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(what_if, what_if_free)

/* As if one of the what-if node's own allocations were not there, or there again. */
void what_if_without(struct what_if *what_if, struct allocation *allocation);
void what_if_with(struct what_if *what_if, struct allocation *allocation);

/* So many allocations that hold the same as this one. */
struct what_if_part {
    struct allocation *allocation;
    int n;
};

/* Some of the allocations that stand in the node's list. */
struct what_if_those {
    const guint *places; /* of each */
    size_t n;
    const struct what_if_part *parts; /* together all of them */
    size_t n_parts;
};

/* As if none of those were there. */
void what_if_without_those(struct what_if *what_if, const struct what_if_those *those);

/* What is charged to a what-if node at one moment, to return to it at once instead of pod by pod. Between
 * the two only what_if_without and what_if_with may have changed the node; several returns are fine. */
struct what_if_mark *what_if_mark(const struct what_if *what_if);
void what_if_return(struct what_if *what_if, const struct what_if_mark *mark);
void what_if_mark_free(struct what_if_mark *mark); /* NULL is ignored */
typedef struct what_if_mark what_if_mark_ptr;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(what_if_mark_ptr, what_if_mark_free)

/* What a pod would hold that is placed so; for a what-if node, or to be kept. */
struct allocation *what_if_allocation(const char *uid, int64_t priority,
                                    const struct placement *placement);
/* Adds another one, whether it fits or not. */
void what_if_add(struct what_if *what_if, struct allocation *take_allocation);

/* Raises what is used of each card and pool to what is used of it on the other node, which differs from
 * this one in its allocations only, and lists one more of those. For asking what fits on both: sums
 * are then no longer those of the allocations. */
void what_if_cover(struct what_if *what_if, const struct node *other, struct allocation *take_allocation);

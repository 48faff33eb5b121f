/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A value model while it is made: what policy/value_model.c, policy/weights.c and policy/card_values.c
 * share.
 */
#include "policy/cutting.h"
#include "policy/value_model.h"

/* A kind while the value model is made. */
struct draft {
    struct valued_kind kind;
    const struct node *node; /* one that has a card of it, or a pool */
    const struct card *card; /* NULL: it is of devices */
    const struct pool *pool;
    struct room *rooms; /* by shape: what is wanted of one, whatever the model */
    int32_t *wanted; /* by shape: the larger part of it; 0: does not fit */
    bool *accepted;  /* by shape: whether a pod of it may have one */
    double *weights; /* by shape, of one card's part; in the end that of all kinds that will do */
    bool paired;     /* as in struct card_values, as is the price */
    int32_t step;    /* sizes within so many thousandths are one */
    int32_t pair_step; /* thousandths that a step of a pair is; 1 where they are no pairs */
    int32_t memory_price;
    struct card_values *own; /* NULL: that of an earlier kind, which is seen alike, is its, too */
};

/* Nodes that have the same cards and pools in the same order, and as much CPU. */
struct supply {
    const struct node *node; /* the first of them */
    double n;
};

struct supplies {
    GArray *all; /* struct supply, in the order in which the first was added, that of names */
    GHashTable
        *places; /* struct node *, a set by what is the same in all of a supply -> where in `all` */
    struct ledger *own; /* of copies of the first nodes; NULL: they are borrowed */
    uint64_t hardware;
    int64_t cpu_most, memory_most; /* that any node has; INT64_MAX: not known of one */
    guint last;                    /* where the last was added */
};

struct making {
    const struct shape *shapes;
    size_t n;
    struct value_model *value_model;
    const struct supplies *supplies;
    size_t n_drafts;
    struct draft drafts[KINDS_MAX];
    const struct draft **homes; /* by shape: where it is measured; NULL: it fits nowhere */
    double gpus, cards; /* that all pods ask for, and that there are */
    bool *typical; /* by shape */
    GArray *order; /* const struct shape *, the typical ones, most frequent first */
};

/* weights.c: sets the weights of all drafts by shape, and how sizes are cut. */
void drafts_weigh(struct making *making);

/* card_values.c. Steps of a pair, or thousandths, in a card; what a pod of the shape is cut as, its size
 * rounded to the draft's step: down, if it is no pair; both 0, if that is nothing. */
int32_t draft_whole(const struct draft *draft);
struct cut draft_cut(const struct draft *draft, size_t shape);
/* Sets the draft's values, unless an earlier draft's is the same. */
void draft_set_values(struct making *making, struct draft *draft);

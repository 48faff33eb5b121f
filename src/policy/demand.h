/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the core itself reads of a demand.
 */
#include <gpuledger/demand.h>

/* More cards than any node has count as so many. */
#define SHAPE_CARDS_MAX 16

/* Pods that ask for the same, and for memory of about the same amount. */
struct shape {
    struct amount memory; /* per card */
    int32_t core;         /* thousandths of each card */
    int32_t cards;        /* 0: no GPU; of `device`, if it is set: devices */
    bool exclusive;       /* whole cards */
    char *device;         /* the pool's resource, a reference (GRefString); NULL: cards */
    int64_t cpu;          /* thousandths of a core, of the pod as a whole */
    struct terms *terms;  /* a reference, for the models that they name; NULL: any */
    double count;         /* pods, the latest ones counting most */
    /* What they ask of a node's memory, in GiB: the sum over all of them and that of the squares, each
     * pod counting as in `count`. */
    double gib, gib_squares;
};

/* All that has been learned, for going on from it elsewhere; what follows from it (struct value_model)
 * is worked out there. */
struct learned_demand {
    const struct shape *shapes; /* in the order in which they are looked through */
    size_t n;
    double gain;    /* what the next pod counts */
    double total;   /* of all shapes: their sum, rounded on the way as pods came */
    uint64_t n_gpu; /* pods with GPUs noted so far */
};

/* Borrowed until the demand is changed. */
struct learned_demand demand_tell(const struct demand *demand);

/* Goes on from what another has learned, instead of what was learned here. At most DEMAND_SHAPES_MAX shapes; takes references. */
void demand_learn(struct demand *demand, const struct learned_demand *learned);

/* As demand_settle, but whether or not enough has changed to matter: two demands that have learned
 * the same are alike afterwards, whenever they were settled before. */
void demand_settle_now(struct demand *demand, struct ledger *ledger);

/* The same for the nodes of a ledger that is locked no more. */
struct supplies; /* policy/value_model.h */
void demand_settle_for(struct demand *demand, const struct supplies *supplies);

/* What follows is worked out anew by whoever settles it next, as where it has just been learned. */
void demand_unsettle(struct demand *demand);

/* Whether demand_settle would find nothing to work out. */
bool demand_is_settled(const struct demand *demand, const struct ledger *ledger);

/* For who keeps a copy that was settled since: whether the other, if it were settled, would be the
 * same. */
bool demand_follows(const struct demand *copy, const struct demand *demand,
                    const struct ledger *ledger);

/* What was worked out, without what it was worked out from: costs next to nothing. */
struct demand *demand_dup_outcome(const struct demand *demand);

/* Enough pods were seen for a model. */
bool demand_is_known(const struct demand *demand);

/* For a model that is made elsewhere: a copy to settle for the nodes as they are, after which what has been learned
 * counts as settled; and takes over what was worked out from it. */
struct demand *demand_draft(struct demand *demand, const struct ledger *ledger);
void demand_adopt(struct demand *demand, const struct demand *draft);

struct value_model;

/* What follows from it; NULL while nothing is known. */
const struct value_model *demand_value_model(const struct demand *demand);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What follows from a demand for the cards of a ledger, made once and then only read: what a free
 * part of a card of each kind is worth, and who would have a use for it.
 */
#include "policy/room.h"

#define KINDS_MAX 64
#define STEPS_MAX 64
#define GROUPS_MAX 32 /* those who want most GPU */
/* Where sizes are too many to be told apart, those within so many thousandths are one. */
#define COARSE 20
/* Pairs are in hundredths, or, where they are many, in fiftieths. What a pod wants is rounded to the
 * nearest of them, since what is rounded down seems to fit beside what it does not; what is free is
 * rounded down, but for what rounding amounts to thousandths may have taken. */
#define FINE 10
#define PAIR_STEPS_MAX (PART_WHOLE / FINE)
#define PAIR_CHIP 2

/* Cards of one kind: of one size and model (struct card.kind); or devices of such pools, each of
 * which is free as a whole or not at all. */
struct valued_kind {
    uint64_t key;
    double cards; /* healthy or not */
    double size;  /* of one, in cards: less than 1 for devices of which several are one card */
    double share; /* the part of them that pods will want for which others do not do, at most 1 */
    const struct card_values *values;
};

/* Pods that ask for several cards or devices, and for so much CPU. */
struct group {
    int32_t cards;
    int64_t cpu; /* thousandths of a core */
    double want; /* if pods ask for all GPUs once, the part of the places for such pods that they ask
                  * for, of those that there are while all nodes are empty; at most 1 */
};

/* For kinds that the same pods see alike. */
struct card_values {
    bool paired; /* pods differ in which they want more of, memory or compute: both count */
    int32_t step;         /* of pairs, in thousandths; else 1 */
    int32_t memory_price; /* of memory, if that of both is PART_WHOLE; what is scarcer costs more */
    /* In cards, of what is free of one: by its smaller part, or by pairs. card_values_worth knows. */
    float worth[(PAIR_STEPS_MAX + 1) * (PAIR_STEPS_MAX + 1)];
    int32_t n_groups;
    struct group groups[GROUPS_MAX]; /* smaller ones first */

    /* The pods that are typical, but for those that ask for devices where these are cards, or for
     * other devices: by steps of CPU and of size; a pod for several cards is so many times as large
     * as one. below[c][s] is the part of them that needs no
     * more CPU than the c-th step and is no larger than the s-th; nobody is below the first. */
    int32_t n_cpus, n_sizes;
    int64_t cpus[STEPS_MAX];
    int32_t sizes[STEPS_MAX];
    float below[STEPS_MAX + 1][STEPS_MAX + 1];
    uint8_t steps[PART_WHOLE + 1]; /* how many sizes are within a part of a card */
    double cpu_only; /* the part of them that asks for no GPU */
};

/* What pods take of a node beside its GPUs, for each card that they are worth. */
struct company {
    double mean;
    double variance; /* the same squared */
};

struct value_model {
    struct company cpu;    /* in thousandths of a core */
    struct company memory; /* in GiB */
    size_t n_kinds;
    struct valued_kind kinds[KINDS_MAX]; /* by key */
    GPtrArray *values;         /* struct card_values */
};

/* How many nodes there are of each kind. */
struct supplies;
/* `own`: it keeps copies of the nodes that it needs; else they live as long as it does. */
struct supplies *supplies_new(bool own);
void supplies_free(struct supplies *supplies);
typedef struct supplies supplies; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(supplies, supplies_free)
/* All nodes of a ledger are to be added, in order of name. */
void supplies_add(struct supplies *supplies, const struct node *node);
/* As ledger_supply of that ledger. */
uint64_t supplies_hardware(const struct supplies *supplies);

/* With one reference. NULL: nothing can be said, since the ledger has no cards or the shapes ask for none. */
struct value_model *value_model_new(const struct shape *shapes, size_t n, struct ledger *ledger);
/* The same of these. */
struct value_model *value_model_of(const struct shape *shapes, size_t n,
                                   const struct supplies *supplies);
struct value_model *value_model_ref(struct value_model *value_model); /* NULL gives NULL; any thread */
void value_model_unref(struct value_model *value_model);          /* NULL is ignored */

/* NULL: none of that kind was there. */
const struct valued_kind *value_kind(const struct value_model *value_model, uint64_t key);

/* Only what is wholly free is whole. */
static inline int32_t pair_steps_free(const struct card_values *values, int32_t part)
{
    return (part == PART_WHOLE ? part : MIN(part + PAIR_CHIP, PART_WHOLE - 1)) / values->step;
}

static inline float card_values_worth(const struct card_values *values, struct room room)
{
    if (!values->paired)
        return values->worth[room_part(room)];
    const int32_t memory = pair_steps_free(values, room.memory);
    const int32_t core = pair_steps_free(values, room.core);
    return values->worth[memory * (PART_WHOLE / values->step + 1) + core];
}

/* How much it is, in thousandths of a card. NULL: nothing is known of such cards. */
static inline int32_t card_values_left(const struct card_values *values, struct room room)
{
    if (!values || !values->paired)
        return room_part(room);
    return (values->memory_price * room.memory +
            (PART_WHOLE - values->memory_price) * room.core) / PART_WHOLE;
}

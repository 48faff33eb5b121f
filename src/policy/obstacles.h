/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What speaks against a card, or a pool, for one ask of a request: the one place where that is
 * decided, whether the question is whether, where or why not. Pure; for placement.c and candidates.c.
 */
#include <gpuledger/placement.h>

struct work_meter;

/* How far a card got with an ask. The refusal tells of the last card that would have been needed,
 * were they taken in the order of how far they got. */
enum obstacle {
    OBSTACLE_TERMS,
    OBSTACLE_SIZE,
    OBSTACLE_HEALTH,
    OBSTACLE_CLOSURE,
    OBSTACLE_OTHER_USE,
    OBSTACLE_TENANT,
    OBSTACLE_SLOTS,
    OBSTACLE_NODE_SLOTS,
    OBSTACLE_MEMORY,
    OBSTACLE_UNLIMITED,
    OBSTACLE_OVERSUBSCRIBED,
    OBSTACLE_PLACE,
    OBSTACLE_CORE,
    OBSTACLE_CLASS,
    OBSTACLE_NONE,
};

/* What an ask is judged by. */
struct situation {
    const struct node *node;
    const struct request *request;
    const struct placement *chosen; /* shares of earlier asks, which count as taken; NULL: none */
    const struct policy *policy;    /* these three only order the candidates */
    const struct demand *demand;
    int32_t pinned;          /* the one card to use, or CARD_UNKNOWN */
    struct work_meter *work; /* where what it costs is counted; NULL: nowhere */
};

static inline uint32_t n_chosen(const struct situation *at)
{
    return at->chosen ? at->chosen->n_shares : 0;
}

/* What an ask takes of a card: what it says, or an instance that is as large at least. */
struct part {
    int64_t bytes; /* more than the card has: none of its instances is as large */
    int32_t core;
    struct mig_place place;
    bool placeless; /* there is no place for the instance */
};

void part_find(const struct situation *at, const struct card_ask *ask, const struct card *card,
               const struct card *now, struct part *ret_part);

/* What an instance of a cut card must have. */
static inline struct amount ask_of_instance(const struct card_ask *ask)
{
    return ask->unlimited ? ask->part : ask->memory;
}

/* The card as it will be with the shares chosen so far; what ends before this share begins, or
 * begins after it ends, is not beside it. */
struct card card_with_chosen(const struct situation *at, const struct card_ask *ask,
                             const struct card *card);

/* `card` as it will be, `now` as it is. */
enum obstacle card_obstacle(const struct situation *at, const struct card_ask *ask,
                            const struct card *card, const struct card *now,
                            struct part *ret_part);

/* What a refusal says of each. */
extern const enum reason obstacle_reasons[];

/* REASON_NONE: the pool has as many devices. */
enum reason pool_obstacle(const struct situation *at, const struct card_ask *ask);

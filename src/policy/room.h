/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is free of a card beside a placement, and what a pod wants of one: of memory and of compute,
 * in thousandths, rounded down: what fits in truth fits here.
 */
#include "policy/demand.h"

#include <gpuledger/placement.h>

#define PART_WHOLE 1000

struct room {
    int32_t memory, core; /* 0 to PART_WHOLE; what a card does not tell of is free */
};

/* As one number: of what is free the smaller part. */
static inline int32_t room_part(struct room room)
{
    return MIN(room.memory, room.core);
}

/* What is free of a card for others, if so much more of it is taken by so many. */
struct taken {
    int64_t memory, core;
    int32_t holders;
    bool exclusive;
};
struct room room_free(const struct node *node, const struct card *card, const struct taken *taken);

/* What a placement takes of a card; NULL: nothing. */
struct taken placement_taken(const struct node *node, const struct card *card,
                             const struct placement *placement);

/* What a pod of the shape takes of each such card, whatever its model, 1 at least; 0: it does not
 * fit. */
struct room room_wanted(const struct node *node, const struct card *card,
                        const struct shape *shape);

/* The same of a device: all of it, or nothing. */
struct room room_wanted_device(const struct pool *pool, const struct shape *shape);

/* Devices of a pool that are free beside a placement; NULL: beside nothing. */
int32_t pool_free(const struct pool *pool, const struct placement *placement);

/* One device of it, in cards. */
double pool_device_size(const struct pool *pool);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A node's stand-in: a what-if node like it, and the roster of its pods, for a search without the lock.
 *
 * Pods that preempt come in numbers, and each changes one node of many. So who has searched gives its
 * stand-ins back, and the next one takes those of nodes that have not changed meanwhile. A stand-in that
 * was taken is nobody else's until it is given back. Nobody sees that one was kept, but for the time that it
 * takes.
 *
 * The table is for the nodes of one ledger, and guarded by what guards that (the store's lock). What it
 * does not keep any longer it hands out, to be freed without the lock.
 */
#include "policy/victims/roster.h"

/* Of all that are kept: some 30,000 pods on 1,000 nodes of 8 cards are 16 MiB. */
#define STAND_INS_BYTES_MAX (24U << 20)

struct stand_in {
    struct what_if *what_if;
    struct roster *roster; /* NULL until it is asked for */
    uint32_t place;        /* of the node, at that moment */
    uint64_t version, told;
    size_t bytes; /* about */
};

/* The node is one of a ledger, or a what-if node, whose stand-in is not kept. */
struct stand_in *stand_in_new(const struct node *node);
void stand_in_free(struct stand_in *stand_in); /* NULL is ignored */

/* Makes the roster, if there is none. */
void stand_in_prepare(struct stand_in *stand_in);

struct stand_ins;

struct stand_ins *stand_ins_new(void);
void stand_ins_free(struct stand_ins *stand_ins);

/* What is kept of the node as it is, or NULL. What is kept of it as it was is added to the left-overs
 * (struct stand_in *). */
struct stand_in *stand_ins_take(struct stand_ins *stand_ins, const struct node *node,
                                GPtrArray *ret_left_over);

/* Its what-if node is as it was when it was taken. */
void stand_ins_give(struct stand_ins *stand_ins, struct stand_in *take_stand_in,
                    GPtrArray *ret_left_over);

/* Bytes of all that are kept, about. */
size_t stand_ins_bytes(const struct stand_ins *stand_ins);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster that has been told to a store, and what the ledger makes of it. Whatever a test did,
 * teardown finds usage to be the sum of its parts.
 */
#include "world.h"

#include <check.h>

static struct world world;
static struct fake_cluster *cluster;

static inline void setup(void)
{
    world_init(&world);
    world_populate(&world);
    cluster = world.cluster;
}

static inline void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

static inline void expect_used(const char *node, int64_t card0, int64_t card1,
                               int64_t unplaced)
{
    ck_assert_int_eq(world_used(&world, node, 0), card0);
    ck_assert_int_eq(world_used(&world, node, 1), card1);
    ck_assert_int_eq(world_unplaced(&world, node), unplaced);
}

static inline bool is_present(const char *name)
{
    const struct node *node = ledger_node(store_lock(world.store), name);
    bool present = node && node->present;
    store_unlock(world.store);
    return present;
}

static inline bool is_healthy(const char *name, int32_t card)
{
    const struct node *node = ledger_node(store_lock(world.store), name);
    bool healthy = node_card(node, card)->healthy;
    store_unlock(world.store);
    return healthy;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One cluster, and one extender after the other on it, which know pods by their seals.
 */
#include "core/bytes.h"
#include "verbs/sealer.h"
#include "world.h"

#include <check.h>
#include <string.h>

#define KEY "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1000\n"
#define OTHER_KEY                                                                                  \
    "key 0000000b 202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f 2000\n"
#define ADOPTED "adopted 1000\n"
#define INDEX "ALIYUN_COM_GPU_MEM_IDX"

static struct world first, now;
static struct fake_cluster *cluster;
static struct seals *seals;

static inline void set_keys(const char *text)
{
    seals_set(seals, keyring_parse(text, NULL));
}

static inline void begin(struct world *world)
{
    const struct store_options options = {
        .policy = &policies[0], .patience_ms = 60000, .seals = seals};

    world->store = store_new(&options);
    world->cluster = cluster;
    world->extender = (struct extender){
        .store = world->store,
        .cluster = fake_cluster_base(cluster),
        .bind_timeout_ms = 400,
    };
    world_sync(world);
}

/* "duo" has two cards of 10 units; "p" and "q" want 3 and are pending. */
static inline void setup(void)
{
    cluster = fake_cluster_new();
    seals = seals_new();
    set_keys(KEY ADOPTED);
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 3});
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "q", .mem = 3});
    begin(&first);
}

static inline void end(struct world *world)
{
    if (!world->store)
        return;
    world_verify(world);
    store_free(world->store);
    world->store = NULL;
}

static inline void teardown(void)
{
    end(&first);
    end(&now);
    fake_cluster_free(cluster);
    seals_free(seals);
}

static inline void restart(void)
{
    end(&now);
    begin(&now);
}

/* "p" is on card 0 of "duo", and runs. */
static inline void run_p(void)
{
    world_expect_bind(&first, "p", "duo", "");
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
    world_catch_up(&first);
    ck_assert_int_eq(world_card(&first, "uid-p"), 0);
}

/* "r" is on card 1, and runs. */
static inline void others_run_r(void)
{
    fake_cluster_add_pod(cluster,
                         &(struct fake_pod){.name = "r", .node = "duo", .mem = 3, .card = "1"});
    fake_cluster_assign(cluster, "r");
    fake_cluster_start(cluster, "r");
}

static inline void expect_used(struct world *world, int64_t card0, int64_t card1, int64_t unplaced)
{
    ck_assert_int_eq(world_used(world, "duo", 0), card0);
    ck_assert_int_eq(world_used(world, "duo", 1), card1);
    ck_assert_int_eq(world_unplaced(world, "duo"), unplaced);
}

static inline int64_t time_of(struct world *world, const char *uid)
{
    const int64_t time_ns = ledger_get(store_lock(world->store), uid)->assume_time_ns;

    store_unlock(world->store);
    return time_ns;
}

static inline enum distrust distrust_of(struct world *world, const char *uid)
{
    const struct allocation *held = ledger_get(store_lock(world->store), uid);
    const enum distrust distrust = held->distrust;

    store_unlock(world->store);
    return distrust;
}

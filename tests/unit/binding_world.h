/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An extender whose Bindings are looked at. Whatever a test did, teardown finds that no card was
 * granted twice and that usage is the sum of its parts.
 */
#include "base/metrics.h"
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

/* "duo" has two cards of 10 units, "mono" one of 10; pod "p" wants 6 and is pending. */
static inline void setup_with_p(void)
{
    world_init(&world);
    cluster = world.cluster;
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_sync(&world);
}

static inline void teardown(void)
{
    g_autofree char *violation = fake_cluster_violation(cluster);

    ck_assert_msg(!violation, "%s", violation);
    world_verify(&world);
    world_release(&world);
}

static inline uint64_t results(enum bind_result result)
{
    return metrics_counted(COUNTER_BINDS, result);
}

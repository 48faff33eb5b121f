/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of a cluster's GPU is in use, in cards, and how much of it a pod asks for. Pure; under the
 * store's lock.
 */
#include <gpuledger/ledger.h>

struct occupancy {
    double gpus;      /* cards, and what pools of devices come to */
    double used;      /* each as far as its most used resource is */
    double part_used; /* free on cards that are in use */
    double untouched; /* free on those that nobody uses */
    unsigned overcommitted; /* cards that hold more than they have */
};

/* Of the nodes that exist. */
void occupancy_read(const GPtrArray *nodes, struct occupancy *ret_occupancy);
/* Of one node. */
void occupancy_read_node(const struct node *node, struct occupancy *ret_occupancy);

/* What a request comes to, in cards: the mean over the nodes that have such cards, since amounts are
 * counted in the unit of each node and against the size of its cards. `nodes` that may take the pod are
 * those whose byte in `barred` is 0; NULL: all. If none of them has such cards, the pod asks for as many
 * whole ones. An entry of `nodes` may be NULL. */
double occupancy_of_request(const GPtrArray *nodes, const uint8_t *barred,
                            const struct request *request);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of a cluster's GPU is in use, in cards. Pure; under the store's lock.
 */
#include <gpuledger/ledger.h>

struct occupancy {
    double gpus;      /* cards, and what pools of devices come to */
    double used;      /* each as far as its most used resource is */
    double part_used; /* free on cards that are in use */
    double untouched; /* free on those that nobody uses */
    unsigned overcommitted; /* cards that hold more than they have */

    /* What a card is like, for pods that ask for memory. */
    int64_t card_memory; /* bytes, the mean */
    int64_t memory_unit;
};

void occupancy_read(const GPtrArray *nodes, struct occupancy *ret_occupancy);

/* What a request comes to. */
double occupancy_of_request(const struct occupancy *occupancy, const struct request *request);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A made-up cluster of any size: nodes of equal cards, and pods spread evenly over them. */
#include "store/store.h"

struct crowd {
    int nodes, cards, pods;
};

char *crowd_node_name(int i);

/* Both begin and end the lists of all feeds, as a start does. */
void crowd_fill(const struct crowd *crowd, struct store *store);
/* One of the lists. */
void crowd_list(const struct crowd *crowd, struct store *store, enum feed feed);

/* A pod of the crowd, running; the `generation` changes what its annotations say. */
void crowd_put_pod(const struct crowd *crowd, struct store *store, int i, int generation);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the core itself reads of a demand.
 */
#include <gpuledger/demand.h>

/* More cards than any node has count as so many. */
#define SHAPE_CARDS_MAX 16

/* Pods that ask for the same. */
struct shape {
    struct amount memory; /* per card */
    int32_t core;         /* thousandths of each card */
    int32_t cards;        /* 0: no GPU */
    bool exclusive;       /* whole cards */
    int64_t cpu;          /* thousandths of a core, of the pod as a whole */
    struct terms *terms;  /* a reference, for the models that they name; NULL: any */
    double count;         /* pods, the latest ones counting most */
};

struct outlook;

/* What follows from it; NULL while nothing is known. */
const struct outlook *demand_outlook(const struct demand *demand);

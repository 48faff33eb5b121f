/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The best filling of one node when each pod has a weight; for bound.c alone.
 */
#include "simulate/bound.h"

/* How often a filling has each of its pods. */
struct filling_part {
    uint32_t pod;
    uint32_t times;
};

struct fillings;

/* Reads the problem, which must outlive it. */
struct fillings *fillings_new(const struct bound_problem *problem);
void fillings_free(struct fillings *fillings);

/* Pods that take nothing of anything: they find room always, and are in no filling. */
bool fillings_takes_nothing(const struct fillings *fillings, size_t pod);

/* Before fillings_best: pods of the kind weigh so much now. */
void fillings_weigh(struct fillings *fillings, int32_t kind, const double *weights);

/* What the heaviest filling of a node weighs, which must be of the kind last weighed; and one that weighs
 * as much but for rounding: struct filling_part. */
double fillings_best(struct fillings *fillings, size_t node, GArray *ret_parts);

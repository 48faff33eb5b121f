/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The upper bound (simulate/bound.h) for the pods of one run. It is known which pods came, and in
 * which cluster they found themselves; the mean of what was allocated over some time is not above the
 * bound for the mean of what had come.
 */
#include "simulate/simulation_state.h"

/* Looks at the cluster as it is before the first pod comes. NULL: nothing can be said of it, since it
 * has devices of pools, nodes with cards of several kinds, or too many different nodes or pods. */
struct simulation_bound *simulation_bound_new(struct simulation *simulation);
void simulation_bound_free(struct simulation_bound *bound); /* NULL is ignored */

/* As a part of the cluster's GPU; `came` says how many of each of simulation->kinds did. */
double simulation_bound_for(const struct simulation_bound *bound, const double *came);

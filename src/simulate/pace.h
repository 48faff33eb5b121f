/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time of a simulation in which node sides take a while for each pod, one after the other: pods come
 * at a steady rate, and what they find depends on who has been served by then.
 *
 * The clock is made up and lies before the machine's own, so that binds which would wait give up at
 * once; the simulation lets time pass and asks again.
 */
#include "store/cluster.h"
#include "store/store.h"

struct pace;

/* Each takes `takes_ms`, `per_second` come. Sets the store's clock from now on. Borrows both. */
struct pace *pace_new(struct store *store, struct cluster *cluster, int64_t takes_ms,
                      int64_t per_second);
void pace_free(struct pace *pace); /* NULL is ignored */

/* The next pod comes; what was served meanwhile is told. */
bool pace_arrive(struct pace *pace, GError **error);
/* Lets time pass until the next pod has been served. False, without an error if there is none. */
bool pace_pass(struct pace *pace, GError **error);
/* The pod that has come is bound to the node. */
void pace_bind(struct pace *pace, const char *ns, const char *name, const char *node);

/* Of all pods, from their coming until they are served; seconds. */
void pace_sum_up(struct pace *pace, double *ret_median_s, double *ret_p99_s);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many more pods of which may be made to end: the PodDisruptionBudgets, as far as they are known.
 * Without the right to read them there are none. Guarded by the store's lock.
 */
#include "wire/budget.h"

#include <gpuledger/ledger.h>

struct budgets;

struct budgets *budgets_new(void);
void budgets_free(struct budgets *budgets);
/* The same as they are now, for a thread without the lock. */
struct budgets *budgets_copy(const struct budgets *budgets);

/* Replaces the one of that name; the generation is the caller's mark, for budgets_sweep. */
void budgets_set(struct budgets *budgets, const struct budget_view *view, uint32_t generation);
void budgets_remove(struct budgets *budgets, const char *ns, const char *name);
/* Forgets those of other generations. */
void budgets_sweep(struct budgets *budgets, uint32_t generation);

/* How many more pods of each may end, in order of namespace and name. */
uint32_t budgets_n(const struct budgets *budgets);
void budgets_allowed(const struct budgets *budgets, int64_t *ret_allowed);

/* The places of those that the pod's end would draw on, the first `max`; returns how many. */
uint32_t budgets_of(const struct budgets *budgets, const struct allocation *allocation,
                    uint32_t *ret_places, uint32_t max);

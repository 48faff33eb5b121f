/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether the pods of a Workload have cards, all of them at once: on a copy of the store that also holds
 * what was promised. Who fits stays on the copy, so that the next one is asked beside it. One thread; the
 * store's own lock is only taken to copy, a few nodes at a time.
 */
#include "kueue/answer.h"
#include "kueue/promises.h"
#include "store/store.h"

#define JOINT_FIT_PODS_MAX (2 * WORKLOAD_COUNT_MAX) /* tried on one copy */

struct joint_fit;
struct joint_fit *joint_fit_new(struct store *store);
void joint_fit_free(struct joint_fit *joint);
typedef struct joint_fit joint_fit; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(joint_fit, joint_fit_free)

/* Of the store, with all that has been placed on it. */
struct store *joint_fit_copy(const struct joint_fit *joint);

/* They take places; what fits nowhere takes none. */
void joint_fit_owe(struct joint_fit *joint, const struct owed *owed);

/* So many have been tried that the rest is for another copy. */
bool joint_fit_is_spent(const struct joint_fit *joint);

struct answer joint_fit_ask(struct joint_fit *joint, const struct pod_sets *pods);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cluster as it will be (explain/reclaim/reclaim_plan.h), for the files of this folder alone. All but making it
 * is under the copy's lock. */
#include "explain/reclaim/reclaim_plan.h"
#include "explain/trial.h"

struct reclaim_ground {
    struct store *copy;
    struct moment moment; /* of the store that it is a copy of */
    struct budgets *budgets;
    bool (*stays)(const struct allocation *allocation, void *data);
    void *data;
    GHashTable *going; /* account -> amount_sum[ELASTIC_KEYS_MAX]: held by pods that end */
    GArray *changes;   /* struct change */
    guint number;      /* of pods that are put without a UID */
};

/* Of the copy. */
struct elastic_quotas *reclaim_ground_quotas(const struct reclaim_ground *ground);
/* By which it is known where the pod counts; borrowed. */
struct pod_view reclaim_view(const struct allocation *allocation);

/* The pod ends. */
void reclaim_ground_drop(struct reclaim_ground *ground, struct allocation *allocation);
/* The node takes the pod; false: it does not. */
bool reclaim_ground_put(struct reclaim_ground *ground, const struct trial_pod *pod,
                        const struct node *node, const struct placement *placement);
/* Back to so many changes. */
void reclaim_ground_undo(struct reclaim_ground *ground, guint n);

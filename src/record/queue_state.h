/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What has come of the waiting of pods (queue/arrivals/arrivals.h), as a record has it:
 *
 *   {"schedulers":["default-scheduler"],"broughtBy":["ml"],
 *    "pods":[{"uid":"u1","asked":true,"asking":MS,"looked":MS,"until":MS,"hopeless":MS,"settled":true,
 *             "place":{"node":"n1","dialect":"gpushare","shares":[…],"ending":["u2"]}}]}
 *
 * "excused":true in place of "asking": it cannot ask. Without shares a place is only where the pod may go; shares are as a booking has them.
 */
#include "store/store.h"
#include "json/json.h"

/* The image is complete. */
void queue_state_encode(struct json_writer *writer, struct arrivals_image *image);

/* For arrivals_learn; borrows from the arena, and notes the schedulers. Under the lock of the store, which knows what the pods ask
 * for; of those that it does not know nothing is said. NULL, with an error: it cannot be understood. */
GArray *queue_state_decode(struct json_arena *arena, const cJSON *object, struct store *store,
                         GError **error);

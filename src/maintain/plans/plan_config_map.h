/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The ConfigMap of a plan at the API server: its order, and the annotation with what has come of it. Any thread. */
#include "kube/api_client.h"
#include "maintain/plans/plan_order.h"
#include "maintain/plans/plan_status.h"

/* The order as it is now; the caller frees it. */
enum outcome plan_config_map_read(struct api_client *client, const struct plan_order *order,
                                  struct plan_order **ret_now, GError **error);

/* Writes the status, against the version that was read; where only others' fields have changed meanwhile it is
 * written again. `order` then has the version and the status that are there. False, with an error: it was not
 * written, and somebody else may have. */
bool plan_config_map_write(struct api_client *client, struct plan_order *order,
                           const struct plan_status *status, GError **error);

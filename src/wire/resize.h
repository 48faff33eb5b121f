/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What kubelet says that a pod has, which differs from its spec while it is resized in place. Any thread. */
#include "json/json.h"

#include <gpuledger/object.h>

/* Gives the containers what their statuses say; `lists`: of containers and of init containers, NULL: none. Names are
 * unique among both. A status that cannot be read says nothing. */
void resize_read_statuses(struct json_arena *arena, const cJSON *const lists[2],
                          struct container_view *views, size_t n);

/* Whether the pod's conditions say that its node can never give what the spec asks for now. */
bool resize_is_infeasible(struct json_arena *arena, const cJSON *conditions);

/* Whether kubelet reports what the pod has as a whole, if only with nothing in it. */
bool resize_reports_level(const cJSON *pod);

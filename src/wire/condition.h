/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an object's status.conditions say, as Kubernetes writes them everywhere: type and status, of which
 * "True" is a yes. Source: meta/v1 Condition, core/v1 PodCondition.
 */
#include "json/json.h"

/* The first condition of that type is true; `conditions` NULL: there are none. */
bool condition_is_true(struct json_arena *arena, const cJSON *conditions, const char *type);

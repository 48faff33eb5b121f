/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods a source of usage has told to be idle (policy/idleness.h), as a record has it; times in Unix
 * milliseconds:
 *
 *   {"until":1767225900000,"after":1800000,
 *    "pods":[{"namespace":"ml","name":"notebook","since":1767220000000}]}
 */
#include "policy/idleness.h"
#include "json/json.h"

void idle_pods_encode(struct json_writer *writer, const struct idleness *idleness);

/* NULL, with an error, if it cannot be understood. */
struct idleness *idle_pods_decode(struct json_arena *arena, const cJSON *object, GError **error);

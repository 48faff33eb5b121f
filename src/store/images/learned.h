/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What policies have learned of the pods that came (policy/demand.h), as a record has it:
 *
 *   {"gain":"1.01","total":"101.2","gpuPods":100,"shapes":[{"memory":10,"memoryKind":1,"core":0,
 *    "cards":1,"exclusive":false,"cpu":1000,"models":["T4"],"modelsNot":[],"count":"60.3"}]}
 *
 * A shape of devices says which: "device":"nvidia.com/gpu".
 *
 * Numbers with a fraction are strings, exact to the last bit. At most DEMAND_SHAPES_MAX shapes.
 */
#include "policy/demand.h"
#include "gate/part.h"
#include "json/json.h"

/* After all else: a replay compares decisions from here on. */
PART_ROW(learned, 120);

/* `bare`: "withoutModel":true besides: decisions go without a value model until the next OBSERVED_OUTLOOK. */
void learned_encode(struct json_writer *writer, const struct demand *demand, bool bare);

/* A demand that has learned this, and works nothing out yet; NULL, with an error, if it cannot be
 * understood. */
struct demand *learned_decode(struct json_arena *arena, const cJSON *object, bool *ret_bare,
                              GError **error);

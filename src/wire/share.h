/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A share of a card, or devices of a pool, as JSON: in bookings, records and what plans keep. What is decoded
 * borrows from the document.
 */
#include "json/json.h"

#include <gpuledger/ledger.h>

void share_encode(struct json_writer *writer, const struct share *share);
bool share_decode(struct json_arena *arena, const cJSON *object, struct share *ret_share);

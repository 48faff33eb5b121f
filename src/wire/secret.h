/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Secret of v1 with the keys of seals.
 */
#include "json/json.h"

/* Strings are borrowed, data as it is written: in base64; NULL where there is nothing. */
struct secret_view {
    const char *version; /* metadata.resourceVersion */
    const char *keys;
    const char *rotate;
};

/* The view borrows from the arena. Only the resourceVersion must be there. */
bool secret_view_decode(struct json_arena *arena, const cJSON *object,
                        struct secret_view *ret_secret, GError **error);

/* A merge patch over that version: `keys` in base64, and no `rotate`. */
void secret_patch_encode(struct json_writer *writer, const char *version, const char *keys);

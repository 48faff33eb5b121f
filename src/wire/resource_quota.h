/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* ResourceQuotas, as far as they say how much a namespace may have. Source: v1. */
#include "json/json.h"

/* Borrowed from the arena. */
struct resource_quota_view {
    const char *ns, *name;
    struct string_pairs hard; /* spec.hard: quantities by key */
};

bool resource_quota_view_decode(struct json_arena *arena, const cJSON *object,
                                struct resource_quota_view *ret_quota, GError **error);

/* The same as an object again. */
void resource_quota_view_encode(struct json_writer *writer,
                                const struct resource_quota_view *quota);

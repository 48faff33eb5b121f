/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* JSON documents in an arena that lasts for a test. */
#include "json/json.h"

#include <check.h>
#include <string.h>

static struct json_arena *arena;

static inline void setup(void)
{
    arena = json_arena_new();
}

static inline void teardown(void)
{
    json_arena_free(arena);
}

static inline const cJSON *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    const cJSON *document = json_parse(arena, text, strlen(text), &error);

    ck_assert_msg(document != NULL, "%s: %s", text, error ? error->message : "");
    return document;
}

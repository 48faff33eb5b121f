/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is sent to ask how many pods fit: {"pod": …, "replicas": …, "drain": […], "template": …}, each
 * of which may be missing; or what makes pods by itself, JSON or YAML (snapshot/manifest.h).
 */
#include "snapshot/manifest.h"

struct fit_body {
    bool has_pod, has_template;
    struct manifest manifest;
    int64_t replicas;    /* 0: as many as fit */
    const char **drain;  /* ends with NULL */
    struct node_view template;
};

/* Borrows from the arena. */
bool fit_body_parse(struct json_arena *arena, const char *text, size_t length,
                    struct fit_body *ret_body, GError **error);

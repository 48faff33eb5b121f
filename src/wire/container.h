/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A pod's containers: decoding into views, and writing them anew. Any thread. */
#include "json/json.h"

#include <gpuledger/object.h>

/* Appends the containers of one of a pod's two lists to `views`, which have room for POD_CONTAINERS_MAX or all. */
bool container_views_decode(struct json_arena *arena, const cJSON *list, bool init,
                            struct container_view *views, size_t *n, GError **error);

/* An object with the view's fields. Of the environment it has what `hook` says, and nothing else. */
void container_view_encode(struct json_writer *writer, const struct container_view *view);

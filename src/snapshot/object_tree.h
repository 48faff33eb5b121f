/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * API objects as trees that are changed in place: what a snapshot does to its objects. The trees
 * are the caller's (cJSON_Delete), not an arena's. Any thread, a tree belongs to one at a time.
 */
#include "store/store.h"
#include "json/json.h"

/* From an object's text, which must be JSON; through the arena. */
cJSON *object_tree_parse(struct json_arena *arena, const char *text);

/* The text below that key; "" if there is none. */
const char *object_tree_get(const cJSON *parent, const char *key);
void object_tree_set(cJSON *parent, const char *key, const char *value);
/* The object below that key, made if need be. */
cJSON *object_tree_descend(cJSON *parent, const char *key);

/* Adds to the object's metadata; NULL or empty changes nothing. */
void object_tree_annotate(cJSON *tree, const struct annotations *annotations);

/* Fills in what the API server would, where it lacks: kind, namespace, UID, phase. */
void object_tree_complete(cJSON *tree, enum feed feed);

/* Now, as the API writes it. Free with g_free. */
char *object_tree_timestamp(void);

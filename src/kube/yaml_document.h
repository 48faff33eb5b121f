/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * YAML to the same tree as JSON, so that one decoder (json_decode) and one style of error serve
 * kubeconfigs, saved clusters and the program's own configuration file.
 *
 * Scalars: a plain scalar is what JSON would make of the same characters (a number, true, false,
 * null), an empty one and "~" are null, and everything else is a string; so "yes", "0755" and
 * "1.2.3" stay as they were written. Keys are strings. Aliases are copied; merge keys ("<<"),
 * a key that comes twice and tags other than those of the core schema are errors.
 *
 * Input may be hostile: size, depth and what aliases expand to are capped.
 * Threads: any, a tree belongs to one at a time.
 */
#include <cjson/cJSON.h>
#include <glib.h>
#include <stddef.h>

#define YAML_SIZE_MAX ((size_t)256 << 20)
#define YAML_DEPTH_MAX 100
#define YAML_ALIAS_VALUES_MAX 100000 /* values that all aliases together may add */

/* Exactly one document; an empty text is a null value. Errors are GPULEDGER_ERROR_INVALID or
 * _LIMIT and start with "line L, column C: ". Free with cJSON_Delete. */
cJSON *yaml_load(const char *text, size_t length, GError **error);

/* Any number of documents, as one array. */
cJSON *yaml_load_all(const char *text, size_t length, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods as people write them down: JSON or YAML, one object or documents or a List of them, a Pod or
 * what makes pods from a template (Deployment, StatefulSet, Job, CronJob …). Objects of other kinds
 * are passed over; exactly one must make pods.
 */
#include "json/json.h"

#define MANIFEST_MAX ((size_t)4 << 20) /* bytes */
#define MANIFEST_REPLICAS_MAX 1000000

struct manifest {
    const char *kind;   /* "Deployment" */
    struct pod_view pod; /* of the template; the namespace is "default" where none is given */
    int64_t replicas;   /* 1 where it says nothing */
    bool counted;       /* it says how many */
};

/* Borrows from the arena. Errors are GPULEDGER_ERROR_INVALID or _LIMIT. */
bool manifest_parse(struct json_arena *arena, const char *text, size_t length,
                    struct manifest *ret_manifest, GError **error);

/* The same of an object that has been parsed. */
bool manifest_decode(struct json_arena *arena, const cJSON *object, struct manifest *ret_manifest,
                     GError **error);

/* The tree of one JSON or YAML text: an array of documents, if there are several. */
const cJSON *manifest_load(struct json_arena *arena, const char *text, size_t length,
                           GError **error);

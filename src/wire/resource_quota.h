/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ResourceQuotas and ElasticQuotas, as far as they say how much a namespace may have. Source: v1;
 * scheduling.x-k8s.io/v1alpha1 (sigs.k8s.io/scheduler-plugins). A ResourceQuota may have the two maps of
 * an ElasticQuota, too, as JSON in its annotations gpuledger.io/min and gpuledger.io/max.
 */
#include "json/json.h"

/* Borrowed from the arena. */
struct resource_quota_view {
    const char *ns, *name;
    bool elastic;             /* an ElasticQuota */
    struct string_pairs hard; /* spec.hard: quantities by key */
    struct string_pairs min, max; /* of the ElasticQuota's spec, or of annotations */
};

bool resource_quota_view_decode(struct json_arena *arena, const cJSON *object,
                                struct resource_quota_view *ret_quota, GError **error);

bool elastic_quota_view_decode(struct json_arena *arena, const cJSON *object,
                               struct resource_quota_view *ret_quota, GError **error);

/* The same as an object again; what annotations have said is then in its spec. */
void resource_quota_view_encode(struct json_writer *writer,
                                const struct resource_quota_view *quota);

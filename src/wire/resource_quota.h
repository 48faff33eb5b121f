/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ResourceQuotas and ElasticQuotas, as far as they say how much a namespace may have. Source: v1;
 * scheduling.x-k8s.io/v1alpha1 (sigs.k8s.io/scheduler-plugins). A ResourceQuota may have the two maps of
 * an ElasticQuota, too, as JSON in its annotations gpuledger.io/min and gpuledger.io/max.
 *
 * Koordinator makes a tree of ElasticQuotas by labels and annotations, all below
 * quota.scheduling.koordinator.sh/: parent, is-parent, tree-id, allow-lent-resource; shared-weight and
 * namespaces, as JSON. A pod's label name asks for a quota. Source: koordinator apis/extension,
 * elastic_quota.go at 0b8df2f.
 */
#include "json/json.h"

#define QUOTA_NAMESPACES_MAX 1024 /* that one quota names */

/* What Koordinator's words say of an ElasticQuota. */
struct quota_tree_view {
    bool inside;        /* it is in a tree: it has one of these words */
    bool is_parent;     /* other quotas may name it as theirs */
    bool keeps;         /* lends nothing */
    const char *parent; /* NULL: at the top */
    const char *tree;   /* "" if it does not say which */
    struct string_pairs weights;
    const char **namespaces; /* whose pods count there, NULL at the end; or NULL */
    const char *unread;      /* why some of its annotations cannot be read; NULL: they can */
};

/* Borrowed from the arena. */
struct resource_quota_view {
    const char *ns, *name;
    bool elastic;             /* an ElasticQuota */
    struct string_pairs hard; /* spec.hard: quantities by key */
    struct string_pairs min, max; /* of the ElasticQuota's spec, or of annotations */
    struct string_pairs labels,
        annotations; /* those that `in` is read from, or that cannot be read */
    struct quota_tree_view in;
};

/* The quota that a pod asks to be counted in, by name; NULL: none. */
const char *quota_of_pod(const struct pod_view *pod);

bool resource_quota_view_decode(struct json_arena *arena, const cJSON *object,
                                struct resource_quota_view *ret_quota, GError **error);

/* Koordinator's own root is no quota: it comes out without amounts and words. */
bool elastic_quota_view_decode(struct json_arena *arena, const cJSON *object,
                               struct resource_quota_view *ret_quota, GError **error);

/* The same as an object again; what annotations have said is then in its spec. */
void resource_quota_view_encode(struct json_writer *writer,
                                const struct resource_quota_view *quota);

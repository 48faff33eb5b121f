/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bodies that kube-scheduler exchanges with an extender. Source: k8s.io/kube-scheduler
 * extender/v1, whose structs carry no JSON tags: exact Go field names on the wire, matched without
 * regard to case when read.
 */
#include "json/json.h"

#include <gpuledger/reason.h>

#define EXTENDER_NODES_MAX 50000 /* names in one call */
#define EXTENDER_PODS_MAX 1000   /* pods that are to be placed together */

/* Borrowed from the arena and from the body's text, which must stay until the answer is encoded. */
struct filter_args {
    struct pod_view pod;
    const char **names; /* node names in order, from NodeNames or from Nodes.items */
    size_t n_names;
    bool by_name;       /* NodeNames was given, so NodeNames is what the answer must hold */
    struct json_strings strings; /* NodeNames as they stood in the body, if they can be had */
    const cJSON *nodes; /* Nodes.items, else NULL; items in the order of names */
    const struct json_span *spans; /* the items' text, if it can be had */
};

/* A missing Pod, neither or both kinds of node list, too many nodes: errors. `ret_args->pod` may
 * lack a UID (the wire allows it); the verb decides. */
bool filter_args_parse(struct json_arena *arena, const char *text, size_t length,
                       struct filter_args *ret_args, GError **error);

/* What filter-dryrun is asked: one Pod as above, or in "Pods" several. */
struct dry_run_args {
    struct filter_args filter; /* of several, without a pod */
    struct pod_view *pods;     /* NULL: one */
    size_t n_pods;
};

/* Besides what is an error above: both of "Pod" and "Pods", no pods, too many. */
bool dry_run_args_parse(struct json_arena *arena, const char *text, size_t length,
                        struct dry_run_args *ret_args, GError **error);

struct filter_result {
    const struct filter_args *args;
    const enum reason *reasons; /* one per name; REASON_NONE: the node passes */
    const char *const *barriers; /* one per name, or NULL: what keeps the pod from the node, whatever
                                  * the reason says; NULL: nothing */
};

/* ExtenderFilterResult. Nodes go back the way they came: as names or as whole objects. */
void filter_result_encode(struct json_writer *writer, const struct filter_result *result);
/* The same with no node and an error, on which kube-scheduler tries the pod again. */
void filter_error_encode(struct json_writer *writer, const char *message);

/* HostPriorityList: the nodes that have a mark other than 0; NULL: none has. For kube-scheduler a node that
 * is not in the list has 0, and each row costs it time. Source: prioritizeNodes,
 * pkg/scheduler/schedule_one.go. */
void prioritize_result_encode(struct json_writer *writer, const struct filter_args *args,
                              const int32_t *scores);

struct bind_args {
    const char *pod_name;
    const char *pod_namespace;
    const char *pod_uid;
    const char *node;
};

/* All four are required: an empty one is an error that names it. */
bool bind_args_decode(struct json_arena *arena, const cJSON *body, struct bind_args *ret_args,
                      GError **error);

/* {"Error": message}, message "" for success. */
void bind_result_encode(struct json_writer *writer, const char *message);

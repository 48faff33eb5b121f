/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod that has no node says of who may give it one, and which: its scheduler's name, and what
 * kube-scheduler leaves nodes out for (core/constraints.h). Nobody but the API server can change it,
 * so bind holds every call to it, whatever filter was told.
 */
#include "core/constraints.h"

#include <gpuledger/host.h>
#include <gpuledger/object.h>

#define DEFAULT_SCHEDULER "default-scheduler"

struct pod_rules {
    char *ns, *name;
    char *scheduler; /* NULL: DEFAULT_SCHEDULER */
    struct host host;                /* what it asks of its node in sums */
    struct constraints *constraints; /* NULL: they cannot be read, `why` not */
    char *why;
    int64_t size;        /* constraints_size */
    uint32_t generation; /* the owner's mark */
};

/* Never NULL; copies all it needs. */
struct pod_rules *pod_rules_new(const struct pod_view *pod);
struct pod_rules *pod_rules_dup(const struct pod_rules *rules);
void pod_rules_free(struct pod_rules *rules); /* NULL is ignored */
typedef struct pod_rules pod_rules;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(pod_rules, pod_rules_free)

/* Never NULL. */
const char *scheduler_of_pod(const struct pod_view *pod);
const char *pod_rules_scheduler(const struct pod_rules *rules);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods that a Workload stands for, as they will be: the template with what Kueue will write into it
 * (labels and tolerations of the ResourceFlavors, what other checks want), and without what says nothing
 * of where they may go. They are kept as text, bounded, and read when they are placed. Pure.
 */
#include "kueue/workload.h"

#include <gpuledger/dialect.h>
#include <gpuledger/pod_facts.h>

#define POD_SET_TEXT_MAX 65536 /* bytes of one pod */
#define POD_SETS_FLAVORS_MAX 64

struct pod_set {
    char *name;
    int64_t count;
    char *text;              /* JSON, a Pod */
    struct pod_facts *facts; /* by which its pods are known when they come */
};

struct pod_sets {
    gint n_references;     /* atomic; nothing else changes once it is made */
    char *ns, *name, *uid; /* the Workload's */
    GArray *sets;          /* struct pod_set, those with a GPU alone */
    int64_t n_pods;        /* of them */
    bool topology;         /* see struct workload_pod_set; of any of them */
};

/* A ResourceFlavor that one of the Workload's pod sets is to use. */
struct named_flavor {
    const char *name;
    struct flavor_view view;
};

/* The names of the flavors that the Workload is assigned, each once; borrowed. */
GPtrArray *pod_sets_flavors(const struct workload_view *workload);

/* One reference, the caller's. NULL, with an error that says which pod set cannot be read and why. */
struct pod_sets *pod_sets_new(const struct workload_view *workload, const GArray *flavors,
                              const struct dialect_options *dialects, GError **error);
struct pod_sets *pod_sets_ref(struct pod_sets *sets);
void pod_sets_unref(struct pod_sets *sets); /* NULL is ignored */
typedef struct pod_sets pod_sets;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(pod_sets, pod_sets_unref)

/* One of its pods; borrows from the arena. */
bool pod_set_read(const struct pod_set *set, struct json_arena *arena, struct pod_view *ret_pod,
                  GError **error);

/* Whether a pod of these labels and amounts may be one of the set's. */
bool pod_set_describes(const struct pod_set *set, const struct pod_facts *facts);

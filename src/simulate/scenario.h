/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is simulated: a cluster and the pods that come to it, as Kubernetes has them. Filled once,
 * then only read: any thread.
 */
#include "store/store.h"
#include "simulate/trace.h"
#include "json/json.h"

/* The parts of an object that matter, each as JSON, or NULL where it has none: the same object can
 * be written again under another name. */
struct manifest {
    char *ns, *name, *uid;
    char *labels, *annotations, *spec, *status;
};

/* An object that declares a group of pods. */
struct scenario_group {
    char *text; /* JSON */
    bool native;
};

struct scenario {
    GPtrArray *nodes;      /* struct manifest */
    GPtrArray *bound;      /* struct manifest: pods that have a node */
    GPtrArray *arrivals;   /* struct manifest: pods that come */
    GPtrArray *groups;     /* struct scenario_group */
    GPtrArray *configmaps; /* char *: JSON */
    bool anonymous;        /* the nodes' names mean nothing, and are dealt out anew by each seed */
};

struct scenario *scenario_new(void);
void scenario_free(struct scenario *scenario); /* NULL is ignored */
typedef struct scenario scenario;              /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(scenario, scenario_free)

/* Adds a Node, Pod, ConfigMap or PodGroup. Pods that have ended are passed over; `arrives` makes an arrival of
 * a pod that has a node, too. An error names the object. */
bool scenario_add(struct scenario *scenario, enum feed feed, const cJSON *object, bool arrives,
                  GError **error);

/* Adds what a trace says, in the words of elastic-gpu, whose node side takes both parts of a card
 * and whole ones, and obeys. The scenario is anonymous then. */
void scenario_add_trace(struct scenario *scenario, const struct trace *trace);

/* Appends the object with another name (NULL: its own) and, for a pod, another UID. */
void manifest_write(const struct manifest *manifest, enum feed feed, const char *name,
                    const char *uid, GString *text);

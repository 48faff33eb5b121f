/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Groups of pods that come whole or not at all: what a pod says of the one that it is in, and the objects
 * that declare one.
 *
 * A pod names its group, the first of these counts:
 *   spec.schedulingGroup.podGroupName                      scheduling.k8s.io PodGroup (Kubernetes 1.36)
 *   label scheduling.x-k8s.io/pod-group                    scheduler-plugins, with a PodGroup or without
 *   label pod-group.scheduling.sigs.k8s.io/name            the same, older
 *   annotation gang.scheduling.koordinator.sh/name         Koordinator
 * Those of the last three share their names; how many must come together says a PodGroup of
 * scheduling.x-k8s.io, or, where there is none, the pod: label
 * pod-group.scheduling.sigs.k8s.io/min-available or annotation
 * gang.scheduling.koordinator.sh/min-available, and in …/waiting-time for how long.
 *
 * Source: scheduling.k8s.io/v1alpha2, sigs.k8s.io/scheduler-plugins (Coscheduling), Koordinator's
 * Coscheduling.
 */
#include "json/json.h"

#define POD_GROUP_TIMEOUT_MS INT64_C(300000)     /* where nothing is said */
#define POD_GROUP_TIMEOUT_MAX_MS INT64_C(600000) /* whatever is said */

/* Borrowed from the pod. */
struct pod_group_claim {
    const char *name; /* in the pod's namespace; NULL: it is in no group */
    bool native;      /* of scheduling.k8s.io: names of their own */
    uint32_t min;     /* as the pod says; 0: it does not */
    int64_t timeout_ms;
    bool bound_with;    /* our Binding says that the group came then */
    uint32_t came_with; /* how many it needed then, by our Binding; 0: it does not say */
};

/* Of a Binding, with --gang-strict. */
#define POD_GROUP_BOUND "gpuledger.io/gang"

/* Of a Binding of a pod that comes with its group: how many that needs. */
#define POD_GROUP_MIN "gpuledger.io/gang-min"

struct pod_group_claim pod_group_claim(const struct pod_view *pod);

/* For people, of a group of whose size nobody has said anything that can be read: what the pod says, or
 * where it could be said. Free with g_free. */
char *pod_group_claim_lack(const struct pod_view *pod);

/* Borrowed from the arena. */
struct pod_group_view {
    const char *ns, *name;
    bool native;
    uint32_t min;        /* members that must come together; at most 1: the pods are no gang */
    int64_t timeout_ms;  /* from its first place to its deadline */
    const char *failure; /* another text each time that it has failed to come; NULL: it has not */
};

bool pod_group_view_decode(struct json_arena *arena, const cJSON *object, bool native,
                           struct pod_group_view *ret_group, GError **error);
/* The same as an object again. */
void pod_group_view_encode(struct json_writer *writer, const struct pod_group_view *group);

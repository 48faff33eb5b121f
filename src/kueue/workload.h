/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kueue's objects, as far as an admission check needs them. Views borrow from the arena.
 *
 * Whoever may create Workloads in a namespace writes their pod sets; conditions and checks are in the
 * status, which Kueue and the checks' controllers write.
 *
 * Source: sigs.k8s.io/kueue v0.19.0, apis/kueue/v1beta2 (workload_types.go, admissioncheck_types.go,
 * resourceflavor_types.go).
 */
#include "json/json.h"

#define KUEUE_API "kueue.x-k8s.io/v1beta2"
#define KUEUE_CONTROLLER "gpuledger.io/fit" /* of AdmissionChecks that are ours */

#define WORKLOAD_POD_SETS_MAX 18
#define WORKLOAD_CHECKS_MAX 8
#define WORKLOAD_COUNT_MAX 10000 /* pods of all its pod sets */

/* Pods that are alike. */
struct workload_pod_set {
    const char *name;
    int64_t count;         /* those that Kueue has reserved quota for, or else all of them */
    const cJSON *template; /* PodTemplateSpec */
    const cJSON *flavors;  /* resource -> name of the ResourceFlavor; NULL: none is assigned */
    bool topology;         /* Kueue has chosen the pods' nodes itself (topologyAssignment) */
};

/* How an admission check of the Workload stands. */
struct workload_check {
    const char *name;
    const char *state; /* "Pending", "Retry", "Rejected", "Ready" */
    const char *since; /* RFC 3339 */
    const char *message;
    int64_t retries;      /* evictions because of it, as Kueue counts them */
    int64_t requeue_s;    /* requeueAfterSeconds; 0: none */
    const cJSON *updates; /* podSetUpdates, or NULL */
};

struct workload_view {
    const char *ns, *name, *uid, *version;
    bool reserved;           /* it has quota */
    const char *reserved_at; /* RFC 3339, or NULL; so the next */
    bool admitted;
    const char *admitted_at;
    bool finished, evicted, inactive, terminating;
    const char *
        unreadable; /* why its pod sets cannot be read, of which it has none then; NULL: they can */
    size_t n_pod_sets, n_checks;
    struct workload_pod_set pod_sets[WORKLOAD_POD_SETS_MAX];
    struct workload_check checks[WORKLOAD_CHECKS_MAX];
};

/* Pod sets that cannot be read, are too many, or of a number of pods that is none, make it unreadable: it can be
 * told so by its checks. What has no name, or checks that cannot be read, is an error. */
bool workload_view_decode(struct json_arena *arena, const cJSON *object,
                          struct workload_view *ret_workload, GError **error);

/* Whether it waits for an answer: quota is reserved for it, and nothing has ended it. */
bool workload_view_waits(const struct workload_view *workload);

struct check_view {
    const char *name, *version;
    bool ours;       /* spec.controllerName is KUEUE_CONTROLLER */
    bool parameters; /* spec.parameters is there */
    int64_t generation;
    /* Its condition Active, as it is; NULL: it has none. */
    const char *status, *reason, *message, *since;
    int64_t observed;
    /* Why the rest cannot be read, but for name and controller, and since when it exists, as `since`; NULL: it
     * can. */
    const char *unreadable;
};
/* False: not even whose it is, or it is another controller's. */
bool check_view_decode(struct json_arena *arena, const cJSON *object, struct check_view *ret_check,
                       GError **error);

/* What pods of the flavor get beside what they say. */
struct flavor_view {
    struct string_pairs labels; /* nodeLabels */
    const cJSON *tolerations;   /* or NULL */
};
bool flavor_view_decode(struct json_arena *arena, const cJSON *object,
                        struct flavor_view *ret_flavor, GError **error);

/* RFC 3339 as Unix time in seconds; 0: it cannot be read. A time that has not come is `now_s`. */
int64_t kueue_time(const char *text, int64_t now_s);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ends a pod by the Eviction API (policy/v1, Kubernetes 1.22 and later), which heeds
 * PodDisruptionBudgets: status 429 means that one of them has nothing to give now. One thread.
 */
#include "kube/api_client.h"
#include "store/pod_event.h"

/* A pod as the API server has it now, as far as it matters here. */
struct evictee {
    char *ns, *name;
    char *uid;
    char *owner;      /* UID of its controller; NULL: nobody makes it again */
    char *owner_kind; /* likewise: "ReplicaSet" */
    unsigned ties;    /* pod_view_ties */
    char *node;       /* NULL: it has none */
    bool placed;
    bool ended, ready;
    bool ends;         /* somebody has deleted it, and it is still there */
    int64_t started_s; /* Unix time since which kubelet has had it; 0: it has not yet */
};
void evictee_clear(struct evictee *evictee);
typedef struct evictee evictee; /* for g_auto */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(evictee, evictee_clear)

/* The same of a pod that somebody has read; `ready` stays false. */
void evictee_set(struct evictee *evictee, const struct pod_view *pod);
/* Likewise, as `started_s`. */
int64_t evictee_started_s(const struct pod_view *pod);

/* OUTCOME_NOT_FOUND: there is no such pod any more. */
enum outcome evictee_read(struct api_client *client, const char *ns, const char *name,
                          struct evictee *ret_evictee, GError **error);

enum eviction {
    EVICTION_DONE,    /* it ends, or has ended */
    EVICTION_LATER,   /* a budget has nothing to give: the error says which */
    EVICTION_DOUBTED, /* likewise, but an earlier attempt may have been done, or may be yet */
    EVICTION_MOVING, /* refused for now, since its controller moves it to another node first: KubeVirt does. The error
                      * says so */
    EVICTION_FAILED, /* refused, with an error */
    EVICTION_UNKNOWN /* it may have been done, or may be yet: nobody knows; with an error */
};
/* Of the pod with this UID and no other. `try`: nothing is done (dryRun=All). */
enum eviction eviction_send(struct api_client *client, const struct evictee *evictee, bool try,
                            GError **error);

/* An Event, now. Once; OUTCOME_OK, or an error. */
enum outcome eviction_tell(struct api_client *client, const struct pod_event *event,
                           GError **error);

/* How many pods of that controller are Ready, and not about to end. OUTCOME_OK, or an error. */
enum outcome eviction_count_ready(struct api_client *client, const char *ns, const char *owner,
                                  guint *ret_n, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API server's objects: decoding into the views of <gpuledger/object.h>, and writing the few
 * bodies we send. Source: core/v1 (Pod, Node, ConfigMap, Binding), meta/v1 (Status, ObjectMeta),
 * events.k8s.io/v1 (Event).
 *
 * Views borrow from the arena. A pod without a name, namespace or UID, a node without a name and a
 * ConfigMap without name or namespace are errors; everything else is optional, and a wrong type is
 * an error that names the field. Outputs are set only on success.
 */
#include "json/json.h"

#include <gpuledger/dialect.h>

/* What is listed and watched of the cluster: places in the table of kinds (store/kinds/kind.h). Only those have
 * a name here that somebody names beside their own files and tests; the table may have more. */
enum feed {
    FEED_NODES,
    FEED_PODS,
    FEED_CONFIGMAPS,
    FEED_BUDGETS,
    FEED_RESOURCE_QUOTAS,
    FEED_ELASTIC_QUOTAS,
    FEED_POD_GROUPS,        /* scheduling.x-k8s.io */
    FEED_NATIVE_POD_GROUPS, /* scheduling.k8s.io */
    FEED_LAST = 31,
};
#define FEEDS_MAX (FEED_LAST + 1)
/* What is watched beside, by others than the store. */
enum watched {
    WATCHED_ADMISSION_CHECKS = FEEDS_MAX, /* these two: kueue.x-k8s.io; by option */
    WATCHED_WORKLOADS,
    WATCHED_N
};

/* How a call of the API server ended; everything but OK comes with a GError. */
enum outcome {
    OUTCOME_OK,
    OUTCOME_CONFLICT,  /* 409: refused by the object's state; GET decides what that means */
    OUTCOME_NOT_FOUND, /* 404 */
    OUTCOME_REFUSED,   /* any other definite no: 400, 401, 403, 422, or 429 to the end */
    OUTCOME_UNKNOWN,   /* timeout, 5xx, cut connection, a 409 to a Binding for no known cause: it
                          may or may not have happened */
};
#define OUTCOME_N (OUTCOME_UNKNOWN + 1)
extern const char *const outcome_names[OUTCOME_N];

/* Init containers included. More than an object of etcd has room for: further ones are not read, and
 * who has them is taken to hold whatever they may hold. */
#define POD_CONTAINERS_MAX 32768

bool pod_view_decode(struct json_arena *arena, const cJSON *object, struct pod_view *ret_pod,
                     GError **error);
/* Of a pod that pod_view_decode cannot read: what can be read of it, and why the rest cannot (`unread`; it
 * is `truncated`, too). False if that is not enough to say which pod it is, where, and whether it has
 * ended. */
bool pod_view_decode_part(struct json_arena *arena, const cJSON *object, struct pod_view *ret_pod);
/* The same as pod_view_decode, but the UID may be missing. */
bool pod_view_decode_anonymous(struct json_arena *arena, const cJSON *object,
                               struct pod_view *ret_pod, GError **error);
bool node_view_decode(struct json_arena *arena, const cJSON *object, struct node_view *ret_node,
                      GError **error);
bool configmap_view_decode(struct json_arena *arena, const cJSON *object,
                           struct configmap_view *ret_configmap, GError **error);

/* The other way round: an object with the fields that views have and no others, so that what is kept
 * of it holds no environment; nor has it kubectl's annotation with all that was applied. */
void pod_view_encode(struct json_writer *writer, const struct pod_view *pod);
void node_view_encode(struct json_writer *writer, const struct node_view *node);
void configmap_view_encode(struct json_writer *writer, const struct configmap_view *configmap);

/* The body of a refusal (kind Status) and what it says; all optional. */
struct status_view {
    const char *kind;   /* "Status" */
    const char *reason; /* "Conflict", "NotFound", "Expired" … */
    const char *message;
    int64_t code;
    int64_t retry_after_s; /* details.retryAfterSeconds; 0 if absent */
};
bool status_view_decode(struct json_arena *arena, const cJSON *object,
                        struct status_view *ret_status, GError **error);

/* What we ask the API server to write when a pod gets its node: the body of
 * POST /api/v1/namespaces/{ns}/pods/{name}/binding. Borrowed strings. */
struct binding {
    const char *ns;
    const char *name;
    const char *uid;
    const char *node;
    const struct annotations *annotations; /* NULL or empty: a plain binding */
    /* A label of the pod that shall hold the node's name, or NULL. Older API servers ignore it. */
    const char *node_label;
};
void binding_encode(struct json_writer *writer, const struct binding *binding);

/* Annotations of the pod with this UID; borrowed strings. As a merge patch (RFC 7386), which the
 * API server refuses for a pod with another UID. */
struct pod_annotation {
    const char *ns;
    const char *name;
    const char *uid;
    const char *key; /* NULL: those of `all` */
    const char *value;
    const struct annotations *all;
};
void pod_annotation_encode(struct json_writer *writer, const struct pod_annotation *annotation);

/* One annotation of a Node; borrowed strings. As a merge patch, which the API server refuses if the
 * Node has changed since it had that version. */
struct node_annotation {
    const char *node;
    const char *version; /* metadata.resourceVersion */
    const char *key;
    const char *value; /* NULL: takes it away */
};
void node_annotation_encode(struct json_writer *writer, const struct node_annotation *annotation);

#define LABEL_VALUE_MAX 63 /* bytes; longer names of nodes are left out */

#define EVENT_NOTE_MAX 1024 /* bytes; the API server refuses more */
#define EVENT_NODE_NAMESPACE "default"
#define EVENT_NAME_MAX 253
#define EVENT_WORD_MAX 128 /* reason, action, instance */

/* About a pod or a Node: the body of POST /apis/events.k8s.io/v1/namespaces/{ns}/events.
 * Borrowed strings, within the limits above. */
struct event_object {
    const char *ns; /* the pod's, and therefore the event's; EVENT_NODE_NAMESPACE if it is a Node's */
    const char *name;
    bool node;      /* it is about a Node, and its UID is its name, as kubelet has it */
    const char
        *kind; /* whom it is about instead, of v1, whose UID is not known; NULL: a Pod or Node */
    const char *pod;
    const char *pod_uid;
    const char *time; /* micro_time_format */
    const char *reason;
    const char *action;
    const char *controller; /* a qualified name: "example.com/scheduler" */
    const char *instance;
    const char *note;
    bool normal; /* else a Warning */
};
/* The pod's name and the time in hexadecimal digits, as everybody names Events. Free with g_free. */
char *event_name(const char *pod, int64_t time_us);
void event_encode(struct json_writer *writer, const struct event_object *event);

/* As a merge patch: that it has happened `count` times by now, at least 2, lately at that time. */
void event_series_encode(struct json_writer *writer, int64_t count, const char *time);

/* Unix time as the API server wants it, with exactly six digits after the point. Free with
 * g_free. */
char *micro_time_format(int64_t time_us);

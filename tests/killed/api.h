/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API server whose objects are JSON, by their paths: GET, lists, POST, PUT, merge patches, DELETE, evictions
 * and Bindings, with resourceVersions, UIDs and conflicts as kube-apiserver has them; nodes, pods and
 * ConfigMaps are watched as well (../faults/server.h). What it is asked it does at once; what befalls a request
 * is for strikes.h to say. Beside the objects stands what the tests want to remember.
 */
#include "../faults/server.h"

#include <cjson/cJSON.h>

#define API_NS "kube-system" /* the program's own */

/* One that was accepted, in order. */
struct api_eviction {
    char *uid, *name, *owner; /* UID of its controller; NULL: none */
    int64_t at_us;
    unsigned again; /* so often it was asked for while the pod ended already */
    char by;        /* which replica */
};

struct api {
    GArray *evictions;                 /* struct api_eviction */
    GPtrArray *events;                 /* texts: "REASON NAME" */
    bool (*forbids)(const cJSON *pod); /* a PodDisruptionBudget; NULL: there is none */
    /* After each request that has changed something. */
    void (*changed)(const struct server_request *request, const char *path);
    /* With each change of an object that is watched. */
    void (*told)(const char *path, const char *type, cJSON *object);
};
extern struct api api;

void api_reset(void);

/* Creates it, or replaces it; the text is in the form of printf. Returns it, borrowed. */
cJSON *api_put(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
cJSON *api_get(const char *path); /* NULL: there is none */
void api_remove(const char *path);
/* It was changed. */
void api_touch(const char *path);
/* Paths that begin so; free with g_ptr_array_unref. */
GPtrArray *api_paths(const char *prefix);

/* What is there, in steps: "metadata", "name". NULL: nothing. */
cJSON *api_at(cJSON *object, const char *outer, const char *inner);
const char *api_text(cJSON *object, const char *outer, const char *inner);
const char *api_annotation(const char *path, const char *key); /* NULL: there is none */
/* NULL takes it away. */
void api_annotate(const char *path, const char *key, const char *value);
char *api_pod_path(const char *ns, const char *name); /* free with g_free */
/* UID of the pod's controller; NULL: none. */
const char *api_owner(cJSON *pod);

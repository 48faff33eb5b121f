/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For the fake cluster's own two files: the objects (fake_cluster.c) and the calls (fake_calls.c).
 */
#include "fake_cluster.h"

#define KEY_IDX "ALIYUN_COM_GPU_MEM_IDX"
#define KEY_POD "ALIYUN_COM_GPU_MEM_POD"
#define KEY_ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"

struct pod_object {
    char *ns, *name, *uid, *node, *phase, *containers, *init_containers;
    char *spec[3][2]; /* names and JSON; NULL: fewer */
    int64_t mem;
    bool terminating, started;
    GTree *annotations;
};

struct node_object {
    int mem, count;
    char *name, *status; /* a JSON object */
    int64_t version;
    GTree *annotations;
};

struct event {
    bool deleted;
    char *object;
};

struct delayed {
    char *key, *uid, *node;
    GPtrArray *annotations; /* key, value, … */
};

struct fake_cluster {
    struct cluster base;
    pthread_mutex_t mutex;
    GTree *pods;       /* "ns/name" -> struct pod_object * */
    GTree *nodes;      /* name -> struct node_object * */
    GTree *configmaps; /* node's name -> text */
    GQueue events[FEEDS_MAX];
    GQueue bind_script, get_script, list_script, annotate_script, lock_script;
    GQueue delayed;
    GPtrArray *sent, *posted;
    GRand *chaos;
    unsigned chaos_percent, n_gets, n_bound, n_annotated;
    char *violation;
};

extern const struct cluster_ops fake_cluster_ops;

static inline void lock(struct fake_cluster *fake)
{
    pthread_mutex_lock(&fake->mutex);
}

static inline void unlock(struct fake_cluster *fake)
{
    pthread_mutex_unlock(&fake->mutex);
}

/* Under the lock: the Node as text. */
char *fake_cluster_node_json(const struct node_object *node);
/* Under the lock: sets an annotation, or takes it away; one MODIFIED. */
void fake_cluster_change_node(struct fake_cluster *fake, struct node_object *node, const char *key,
                              const char *value);
/* Under the lock: queues the event of a pod that changed, or was deleted. */
/* It has succeeded or failed. */
bool fake_pod_is_over(const struct pod_object *pod);
void fake_cluster_pod_changed(struct fake_cluster *fake, const struct pod_object *pod,
                              bool deleted);
void fake_delayed_free(gpointer delayed);
/* All objects of a feed, as texts; the feed's queue stays. */
GPtrArray *fake_cluster_objects(struct fake_cluster *fake, enum feed feed);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster in memory: pods, nodes and ConfigMaps as an API server keeps them, Bindings as it
 * carries them out, and a queue of events per feed that stands for the watch. A test says call by
 * call how a Binding or a GET goes wrong. Pods are named "name" (of namespace "ml") or "ns/name".
 * Any thread.
 *
 * Every Binding that is carried out is checked against what the cards of its node hold already, so
 * that a card granted twice is seen whatever the ledger believes: fake_cluster_violation().
 */
#include "store/cluster.h"
#include "store/store.h"

struct fake_cluster;

struct fake_cluster *fake_cluster_new(void);
void fake_cluster_free(struct fake_cluster *fake);
/* What the verbs take. */
struct cluster *fake_cluster_base(struct fake_cluster *fake);

/* --- objects -------------------------------------------------------------------------------- */

struct fake_pod {
    const char *name;
    const char *uid;             /* NULL: "uid-" and the name */
    const char *node;            /* NULL: unbound */
    const char *phase;           /* NULL: "Pending" */
    const char *containers;      /* a JSON array, or NULL for one container of `mem` */
    const char *init_containers; /* a JSON array, or NULL */
    struct string_pair spec[3];  /* more of the spec: names and JSON */
    int64_t mem;                 /* aliyun.com/gpu-mem; 0: none */
    const char *card;            /* ALIYUN_COM_GPU_MEM_IDX as a bind would have written it */
};

/* Replaces a pod of the same name and another UID, whose DELETED comes first. */
void fake_cluster_add_pod(struct fake_cluster *fake, const struct fake_pod *pod);
void fake_cluster_delete_pod(struct fake_cluster *fake, const char *name);
/* Each is one MODIFIED, and nothing for a pod that does not exist. */
void fake_cluster_annotate(struct fake_cluster *fake, const char *name, const char *key,
                           const char *value); /* NULL: takes the annotation away */
/* Nothing comes after "Succeeded" and "Failed". */
void fake_cluster_set_phase(struct fake_cluster *fake, const char *name, const char *phase);
void fake_cluster_terminate(struct fake_cluster *fake, const char *name);
/* The plugin takes a bound pod that waits for it. */
void fake_cluster_assign(struct fake_cluster *fake, const char *name);
/* kubelet has admitted a bound pod, so it has asked the plugin for all that it will ask for. */
void fake_cluster_start(struct fake_cluster *fake, const char *name);
/* Another scheduler binds the pod without annotations. */
void fake_cluster_bind_bare(struct fake_cluster *fake, const char *name, const char *node);
/* The pod exists under this UID and its containers may run. */
bool fake_cluster_lives(struct fake_cluster *fake, const char *name, const char *uid);
/* Never NULL for a pod that exists; free with g_free. */
char *fake_cluster_pod_json(struct fake_cluster *fake, const char *name);
/* NULL for a pod that does not exist, or the value that it lacks; free with g_free. */
char *fake_cluster_uid(struct fake_cluster *fake, const char *name);
char *fake_cluster_annotation(struct fake_cluster *fake, const char *name, const char *key);

/* `mem` units on `count` cards; 0 for a node without gpushare. */
void fake_cluster_put_node(struct fake_cluster *fake, const char *name, int mem, int count);
/* Cards of other dialects: `status` is the Node's, a JSON object. */
void fake_cluster_put_other_node(struct fake_cluster *fake, const char *name, const char *status);
/* One MODIFIED; NULL takes the annotation away. */
void fake_cluster_annotate_node(struct fake_cluster *fake, const char *name, const char *key,
                                const char *value);
/* NULL for what the node lacks; free with g_free. */
char *fake_cluster_node_annotation(struct fake_cluster *fake, const char *name, const char *key);
void fake_cluster_delete_node(struct fake_cluster *fake, const char *name);
/* The ConfigMap that names a node's unhealthy cards; NULL deletes it. */
void fake_cluster_put_unhealthy(struct fake_cluster *fake, const char *node, const char *gpus);

/* --- feeds ---------------------------------------------------------------------------------- */

/* Applies at most `max` queued events of a feed; returns how many there were. */
unsigned fake_cluster_deliver(struct fake_cluster *fake, struct store *store, enum feed feed,
                              unsigned max);
/* Everything that is queued, of all feeds. */
void fake_cluster_deliver_all(struct fake_cluster *fake, struct store *store);
/* What a list of the feed would answer: texts to free with g_ptr_array_unref. Events queued so far
 * are dropped, for a watch goes on from where the list was taken. */
GPtrArray *fake_cluster_snapshot(struct fake_cluster *fake, enum feed feed);
/* A whole list, from a snapshot taken now. */
void fake_cluster_list(struct fake_cluster *fake, struct store *store, enum feed feed);

/* One object as text, decoded and applied. */
void feed_event(struct store *store, enum feed feed, bool deleted, const char *object);

/* --- calls ---------------------------------------------------------------------------------- */

enum fake_act {
    FAKE_ANSWER,       /* as an API server would */
    FAKE_FAIL,         /* nothing is done; the outcome is `outcome` */
    FAKE_LOSE_REPLY,   /* done, but the caller learns nothing: OUTCOME_UNKNOWN */
    FAKE_DELAY_EFFECT, /* OUTCOME_UNKNOWN now; done by fake_cluster_carry_out */
};

struct fake_step {
    enum fake_act act;
    enum outcome outcome;
    int delay_ms;
    void (*hook)(void *data); /* runs before anything is done, without any lock */
    void (*then)(void *data); /* runs when all is done, before the caller learns of it */
    void *data;
};

/* How the next calls go, one step each; later calls are FAKE_ANSWER. A Binding that is sent after
 * its deadline is not carried out, and nobody learns that. */
void fake_cluster_script_bind(struct fake_cluster *fake, const struct fake_step *step);
void fake_cluster_script_get(struct fake_cluster *fake, const struct fake_step *step);
void fake_cluster_script_list(struct fake_cluster *fake, const struct fake_step *step);
void fake_cluster_script_annotate(struct fake_cluster *fake, const struct fake_step *step);
/* Of changes to Nodes. */
void fake_cluster_script_lock(struct fake_cluster *fake, const struct fake_step *step);
/* Calls without a script go wrong at random, `percent` of them, reproducibly by seed. */
void fake_cluster_set_chaos(struct fake_cluster *fake, uint32_t seed, unsigned percent);

/* Bindings of FAKE_DELAY_EFFECT: carried out now, or never. */
void fake_cluster_carry_out(struct fake_cluster *fake);
void fake_cluster_forget_delayed(struct fake_cluster *fake);

/* Bindings that came in, as their bodies; "" beyond the last. Free with g_free. */
char *fake_cluster_sent(struct fake_cluster *fake, unsigned i);
unsigned fake_cluster_n_sent(struct fake_cluster *fake);
unsigned fake_cluster_n_gets(struct fake_cluster *fake);
/* Bindings that took effect. */
unsigned fake_cluster_n_bound(struct fake_cluster *fake);
/* Calls that wanted to annotate a pod. */
unsigned fake_cluster_n_annotated(struct fake_cluster *fake);
/* Events that were posted, as "Reason ns/name: note"; NULL beyond the last. Free with g_free. */
char *fake_cluster_posted(struct fake_cluster *fake, unsigned i);
/* The first card that was granted beyond its size, or pod that could swap cards with another one;
 * NULL if all was well. Free with g_free. */
char *fake_cluster_violation(struct fake_cluster *fake);

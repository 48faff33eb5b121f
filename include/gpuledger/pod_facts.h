/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod is known by besides its cards: its labels, by which budgets find it, what it asks of
 * its node besides CPU and memory (host.h), and the names of its containers. Pods of one template mostly have the same, so those of one ledger are kept once
 * (struct pod_facts_pool). Immutable, shared by reference; any thread may hold one.
 *
 * The sums are those of pod_view_holds (host.h).
 */
#include <gpuledger/names.h>
#include <glib.h>
#include <gpuledger/object.h>

#pragma GCC visibility push(default)

/* Labels and resources beyond these are left out; the pod is `particular` then. */
#define POD_FACTS_LABELS_MAX 256
#define POD_FACTS_AMOUNTS_MAX 32
/* Containers beyond these have no name. */
#define POD_FACTS_CONTAINERS_MAX 64

struct pod_facts_amount {
    const char *resource;
    int64_t thousandths;
};

struct pod_facts {
    gint n_references; /* atomic */
    guint hash;
    bool particular; /* it takes more of its node, or of others, than is known here */
    unsigned ties;   /* pod_view_ties */
    uint32_t n_labels;
    uint32_t n_amounts;
    uint32_t n_containers;
    const struct string_pair *labels;   /* these live in the same block */
    const struct pod_facts_amount *amounts; /* as kube-scheduler counts them */
    const char *const *containers;          /* their names, as a share's `container` counts them */
};

/* One reference, the caller's. */
struct pod_facts *pod_facts_new(const struct pod_view *pod);
struct pod_facts *pod_facts_ref(struct pod_facts *facts); /* NULL gives NULL */
void pod_facts_unref(struct pod_facts *facts);        /* NULL is ignored */
typedef struct pod_facts pod_facts;                   /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(pod_facts, pod_facts_unref)

/* NULL facts have no labels and no amounts. */
const char *pod_facts_label(const struct pod_facts *facts, const char *key);
int64_t pod_facts_amount(const struct pod_facts *facts, const char *resource);
/* The name of a container; NULL: not known, or CONTAINER_POD. */
const char *pod_facts_container(const struct pod_facts *facts, int32_t container);

/* Facts of which there is one copy each. The caller serialises. */
struct pod_facts_pool;

struct pod_facts_pool *pod_facts_pool_new(void);
void pod_facts_pool_free(struct pod_facts_pool *pool);
/* A reference, the caller's. What nobody but the pool refers to any more goes sooner or later. */
struct pod_facts *pod_facts_pool_get(struct pod_facts_pool *pool, const struct pod_view *pod);
guint pod_facts_pool_size(const struct pod_facts_pool *pool);

#pragma GCC visibility pop

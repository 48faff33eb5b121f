/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Workloads that were let in and whose pods have not all come: their cards are taken, though no pod is on
 * them. For a bounded time, and so many for each namespace; who cannot be noted any more is not let in.
 * Pods are known by what they ask for and their labels. Pure; under the owner's lock.
 */
#include "kueue/pod_sets.h"

#define PROMISE_S 120 /* from the answer, or from the admission, if that comes later */
#define PROMISES_MAX 512
#define PROMISES_PER_NAMESPACE 64

/* What is still to come of one. */
struct owed {
    struct pod_sets *pods; /* a reference */
    int64_t *left;         /* for each of the sets, how many pods */
};
void owed_free(gpointer owed);

struct promises;
struct promises *promises_new(void);
void promises_free(struct promises *promises);

bool promises_take(const struct promises *promises,
                   const char *ns); /* there is room for one more */
/* Takes a reference. Nothing if it is known already. */
void promises_add(struct promises *promises, struct pod_sets *pods, int64_t said_s);
bool promises_has(const struct promises *promises, const char *uid);
/* Its pods come from now on. */
void promises_admit(struct promises *promises, const char *uid, int64_t admitted_s);
void promises_forget(struct promises *promises, const char *uid);
void promises_forget_all(struct promises *promises);
void promises_lapse(struct promises *promises, int64_t now_s);
guint promises_count(const struct promises *promises);
/* struct owed *, the oldest first; free with g_ptr_array_unref. */
GPtrArray *promises_owed(const struct promises *promises);
/* char * -> gint64 *: the namespaces that were promised something, and since when (Unix time). Free with
 * g_hash_table_unref. */
GHashTable *promises_namespaces(const struct promises *promises);

/* A pod that is on a node. */
struct arrived {
    const char *uid, *ns;
    int64_t placed_s, created_s;   /* Unix time; 0: not known */
    const struct pod_facts *facts; /* or NULL */
};
/* It is one of those that were promised, the oldest such promise counts; or of none. */
void promises_see(struct promises *promises, const struct arrived *arrived);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods do nothing with the cards that they hold, as a source outside tells (usage/usage_source.h):
 * a wish for the order in which preemption ends pods (policy/victims/victims.h), and nothing else. What it does
 * not name is not known, which is not idle.
 *
 * Filled by one thread, then immutable; shared by references, which any thread takes and gives back.
 * Times are Unix milliseconds.
 */
#include <gpuledger/ledger.h>

#define IDLENESS_PODS_MAX 20000

struct idleness;

struct idle_pod {
    char *ns, *name;
    int64_t since_ms; /* as far back as it was seen to do nothing */
};

/* Good until `until_ms`; a pod counts as idle once it has done nothing for `after_ms`. */
struct idleness *idleness_new(int64_t until_ms, int64_t after_ms);
struct idleness *idleness_ref(struct idleness *idleness); /* NULL gives NULL */
void idleness_unref(struct idleness *idleness);           /* NULL is ignored */
typedef struct idleness idleness;                         /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(idleness, idleness_unref)

/* Of two of one name the first counts. False: there are IDLENESS_PODS_MAX, and it is left out. */
bool idleness_add(struct idleness *idleness, const struct idle_pod *pod);

/* Since when the pod is idle; 0: it is not, or that is not known, or the source is NULL. What was seen of
 * an earlier pod of the same name does not count. */
int64_t idleness_since(const struct idleness *idleness, const struct allocation *pod,
                       int64_t now_ns);

/* In the order in which they were added. */
size_t idleness_n(const struct idleness *idleness);
const struct idle_pod *idleness_at(const struct idleness *idleness, size_t at);
int64_t idleness_until(const struct idleness *idleness);
int64_t idleness_after(const struct idleness *idleness);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much memory and compute of its cards a namespace may have: the ResourceQuotas whose keys are a
 * dialect's (dialect.h). The API server keeps them, but counts nothing under these keys: what a pod
 * gets by default, or as a percentage of a card, is not in the pod.
 *
 * Counted is what the namespace's pods hold, those included whose Binding is under way; of a pod as
 * the API server does it, what its containers have together or one of its init containers before
 * them, whichever is more. Each ResourceQuota counts by itself, and none has a scope. A limit of 0 is
 * none, as with HAMi.
 *
 * Guarded by the store's lock.
 */
#include "quota/sums/space_sums.h"
#include "wire/resource_quota.h"

#include <gpuledger/dialect.h>

struct resource_quotas;

/* ResourceQuotas of one namespace that are kept. Of more, nothing is counted: its pods that ask for what they limit
 * are refused (resource_room_is_closed), until those are gone, say nothing, or are told of again once there is
 * room. */
#define RESOURCE_QUOTAS_MAX 64

struct resource_quotas *resource_quotas_new(void);
void resource_quotas_free(struct resource_quotas *quotas);
/* Before any: how many MiB one of what limits memory is. Source: Project-HAMi/HAMi v2.10.0, whose quotas
 * multiply limits by the memoryFactor. */
void resource_quotas_scale(struct resource_quotas *quotas, int64_t mib);
/* A copy that knows the same. */
struct resource_quotas *resource_quotas_dup(const struct resource_quotas *quotas);

/* What one says, for resource_quotas_set; needs no lock. Free with resource_limits_free. */
struct resource_limits;
struct resource_limits *resource_limits_read(const struct resource_quotas *quotas,
                                             const struct resource_quota_view *view);
void resource_limits_free(struct resource_limits *limits); /* NULL is ignored */

/* Replaces the one of that name; the generation is the caller's mark, for resource_quotas_sweep. One
 * that cannot be read leaves the one before it, or, if there is none, lets no pod of its namespace pass that asks for
 * what it limits (resource_room_is_closed). The API server tells of each at every change of what
 * it has counted: `ret_changed` says whether limits have changed. */
bool resource_quotas_set(struct resource_quotas *quotas, const struct resource_limits *limits,
                         uint32_t generation, bool *ret_changed, GError **error);
void resource_quotas_remove(struct resource_quotas *quotas, const char *ns, const char *name);
/* Forgets those of other generations; whether there were any. */
bool resource_quotas_sweep(struct resource_quotas *quotas, uint32_t generation);

/* What a namespace may still take, for one request. */
struct resource_room;

/* NULL: whatever it likes. Free with resource_room_free, before anything is changed. */
struct resource_room *resource_quotas_room(const struct resource_quotas *quotas,
                                           const struct space_sums *sums, const char *ns,
                                           const struct request *request);
/* Some namespace is limited: the sums are to be caught up first. */
bool resource_quotas_limit(const struct resource_quotas *quotas);
/* What a pod with these shares on the node counts in the sums. */
void resource_quotas_measure(const struct node *node, const struct dialect *dialect,
                             const struct share *shares, uint32_t n_shares,
                             struct space_amounts *ret_amounts);
void resource_room_free(struct resource_room *room); /* NULL is ignored */
/* An allocation of that namespace was made since; no room (NULL): no limit. */
void resource_room_take(struct resource_room *room, struct allocation *allocation);

bool resource_room_is_closed(const struct resource_room *room); /* REASON_QUOTA_UNKEPT */

/* What decides: MiB, or percent of a card's compute. */
struct resource_count {
    const char *quota, *key, *unit; /* of the ResourceQuota and under its spec.hard */
    int64_t limit, used, wanted;
    bool alone; /* no other limit is in the way */
};

/* Whether there is room for the placement on the node; NULL: for what is asked for, on the node's
 * largest cards. If there is not, `ret_count`, if not NULL, is of the first limit in the way. */
bool resource_room_allows(const struct resource_room *room, const struct node *node,
                          const struct placement *placement, struct resource_count *ret_count);

/* The same of what was measured (resource_quotas_measure). */
bool resource_room_allows_amounts(const struct resource_room *room, const char *key,
                                  const int64_t units[SPACE_UNITS]);

/* Of memory and compute: what would have to be given back before there is room for what is asked for, on the
 * node's largest cards; and what an allocation of the namespace would give back. No room (NULL): nothing. */
#define RESOURCE_AMOUNTS 2
void resource_room_lacks(const struct resource_room *room, const struct node *node,
                         int64_t ret_lacks[RESOURCE_AMOUNTS]);
void resource_room_gives(const struct resource_room *room, const struct allocation *allocation,
                         int64_t ret_amounts[RESOURCE_AMOUNTS]);

/* A limit, for people; borrowed. In MiB, or percent of a card's compute, as `unit` says. */
struct resource_limit {
    const char *ns, *quota, *key, *unit;
    int64_t limit;
};
void resource_quotas_each(const struct resource_quotas *quotas,
                          void (*visit)(const struct resource_limit *limit, void *data),
                          void *data);

/* What an allocation counts under that key of a ResourceQuota of its namespace. */
int64_t resource_quotas_count(const struct allocation *allocation, const char *key);

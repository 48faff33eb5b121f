/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What namespaces are sure of, and what they may have at most: ElasticQuotas, and ResourceQuotas with the
 * same two maps as annotations (wire/resource_quota.h).
 *
 * A namespace never has more than its max. Up to its min it may take what it likes. What lies between is
 * lent: all namespaces with quotas together hold no more than the sum of their mins, and of that as much
 * is left to each other namespace as it needs within its own min: what it holds, and what its pods wait
 * for that have no node. Keys for which nobody has a min are limited by max alone. Namespaces without a
 * quota are not limited and do not count. A quota takes nothing back from pods that hold it.
 *
 * A pod counts once, by its UID: by what it holds, from the moment it is booked or a place is held for it,
 * or else by what it waits for.
 *
 * Keys are the resources of dialects, in their units, and two that add up over dialects:
 * gpuledger.io/gpus, in cards (a share is the larger of its parts of the card's memory and compute), and
 * gpuledger.io/gpu-memory, in bytes. Others are ignored: the API server counts those.
 * Source of the semantics: scheduler-plugins, CapacityScheduling.
 *
 * Amounts are thousandths of a unit, and KiB of memory. Guarded by the store's lock.
 */
#include "wire/resource_quota.h"

#include <gpuledger/dialect.h>

#define ELASTIC_KEYS_MAX 32 /* of all quotas together */
#define ELASTIC_QUOTAS_MAX 4096

struct elastic_quotas;

struct elastic_quotas *elastic_quotas_new(void);
void elastic_quotas_free(struct elastic_quotas *quotas);
/* A copy that knows the same of quotas and of pods that wait. */
struct elastic_quotas *elastic_quotas_dup(const struct elastic_quotas *quotas);

/* As those of resource_quotas.h; an ElasticQuota and a ResourceQuota of one name are two. */
bool elastic_quotas_set(struct elastic_quotas *quotas, const struct resource_quota_view *view,
                        uint32_t generation, bool *ret_changed, GError **error);
void elastic_quotas_remove(struct elastic_quotas *quotas, const struct resource_quota_view *view);
bool elastic_quotas_sweep(struct elastic_quotas *quotas, bool elastic, uint32_t generation);

/* A pod waits for a node; the request is copied. Who is known counts anew. */
void elastic_quotas_await(struct elastic_quotas *quotas, const char *uid, const char *ns,
                          const struct request *request);
/* Whether its namespace has a quota: others may then have more. */
bool elastic_quotas_forget(struct elastic_quotas *quotas, const char *uid);

/* What a namespace may still take, for one request. */
struct elastic_room;

/* NULL: whatever it likes. Free before anything is changed. */
struct elastic_room *elastic_quotas_room(struct elastic_quotas *quotas, struct ledger *ledger,
                                         const char *ns, const struct request *request);
void elastic_room_free(struct elastic_room *room); /* NULL is ignored */
/* An allocation of that namespace was made since; no room (NULL): no limit. */
void elastic_room_take(struct elastic_room *room, const struct allocation *allocation);

/* What an amount of that key is in units: cards, bytes, or those of the resource. */
double elastic_units(const char *key, int64_t amount);

/* One key of a namespace. */
struct elastic_count {
    const char *ns, *key;
    int64_t min;
    int64_t max;     /* INT64_MAX: none */
    int64_t used;    /* held, those included whose Binding is under way */
    int64_t waiting; /* asked for by pods without a node */
    int64_t
        lendable; /* what it may hold in all while others keep what they need; INT64_MAX: no min */
};

/* REASON_NONE, _QUOTA_MAX or _QUOTA_LENT: whether there is room for the placement on the node; NULL: for
 * what is asked for, on the node's largest cards. `ret_count` and `ret_wanted`, if not NULL, are of the
 * first key in the way. */
enum reason elastic_room_refuse(const struct elastic_room *room, const struct node *node,
                                const struct placement *placement, struct elastic_count *ret_count,
                                int64_t *ret_wanted);

/* What a namespace has, by key, for who works out what is to be given back (policy/reclaim.h). */
struct elastic_sums {
    int64_t min[ELASTIC_KEYS_MAX], max[ELASTIC_KEYS_MAX], used[ELASTIC_KEYS_MAX];
};
uint32_t elastic_quotas_n_keys(const struct elastic_quotas *quotas);
/* Somebody has a min for the key, so what is above a min is lent. */
bool elastic_quotas_lends(const struct elastic_quotas *quotas, uint32_t key);
/* False: it has no quota. */
bool elastic_quotas_sum(struct elastic_quotas *quotas, struct ledger *ledger, const char *ns,
                        struct elastic_sums *ret_sums);
/* What a pod holds, and what it would hold on the node, by key. */
void elastic_quotas_measure(const struct elastic_quotas *quotas,
                            const struct allocation *allocation,
                            int64_t ret_amounts[ELASTIC_KEYS_MAX]);
void elastic_quotas_foresee(const struct elastic_quotas *quotas, const struct node *node,
                            const struct request *request, int64_t ret_amounts[ELASTIC_KEYS_MAX]);

/* What a pod holds in thousandths of a card. */
int64_t elastic_gpus(const struct allocation *allocation);

/* All namespaces and keys, for people, in order of namespace and key. */
void elastic_quotas_each(struct elastic_quotas *quotas, struct ledger *ledger,
                         void (*visit)(const struct elastic_count *count, void *data), void *data);

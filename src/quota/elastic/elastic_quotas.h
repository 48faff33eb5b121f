/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What namespaces are sure of, and what they may have at most: ElasticQuotas, and ResourceQuotas with the
 * same two maps as annotations (wire/resource_quota.h).
 *
 * Below one another stand those that Koordinator's words put so: an ElasticQuota with one of them is
 * an account of its own, and others are one for each namespace. Of an account:
 * - It and those below it together never have more than its max.
 * - Its min is sure, as far as its parent's is. A parent that says none has what those below it have.
 * - What its parent is sure of, or has borrowed, is lent among those below it, like the mins of those at the
 *   top among these.
 * - It may lend nothing (allow-lent-resource).
 * - If several below one parent want to borrow, each may have its part by shared-weight (by default its max),
 *   and of what then is left, whoever has borrowed least for its weight comes first.
 * - One whose place cannot be told (enum quota_fault) is sure of its min, borrows nothing and lends nothing.
 * A pod counts in the quota that its label names, if that is of its namespace or lists its namespace; else in
 * the quota of its namespace that is called like it, in one of it, with the namespace, or in one that lists it.
 * What an object says of namespaces other than its own counts only if the administrator has named its namespace
 * (elastic_quotas_trust): its list of namespaces, and a parent, which has to be in a named one then. Trees of different tree-id share nothing.
 *
 * A namespace never has more than its max. Up to its min it may take what it likes. What lies between is
 * lent: all namespaces with quotas together hold no more than the sum of their mins, and of that as much
 * is left to each other namespace as it needs within its own min: what it holds, and what its pods wait
 * for that have no node. Keys for which nobody has a min are limited by max alone. Namespaces without a
 * quota are not limited and do not count. A quota takes nothing back from pods that hold it.
 *
 * If only what can be taken back is lent (elastic_quotas_lend_reclaimable), a pod that reclaim may not end is
 * let in within the mins alone, of its account and of those above it.
 *
 * A pod counts once, by its UID: by what it holds, from the moment it is booked or a place is held for it,
 * or else by what it waits for. One that waits and could not come whoever ended counts for nothing: no node
 * would take it, as the caller says, or it asks for more than its quota, or one above it, may ever have.
 *
 * Keys are the resources of dialects, in their units, and two that add up over dialects:
 * gpuledger.io/gpus, in cards (a share is the larger of its parts of the card's memory and compute), and
 * gpuledger.io/gpu-memory, in bytes. Others are ignored: the API server counts those.
 * Source of the semantics: scheduler-plugins, CapacityScheduling; Koordinator's elasticquota plugin.
 *
 * Amounts are millionths of cards, KiB of memory, and thousandths of other units. Guarded by the store's lock.
 */
#include "core/amount_sum.h"
#include "quota/sums/space_sums.h"
#include "wire/resource_quota.h"

#include <gpuledger/dialect.h>

#define ELASTIC_KEYS_MAX                                                                           \
    32 /* of all quotas together: one of each namespace before others (keys.c) */
#define ELASTIC_QUOTAS_MAX 4096
#define ELASTIC_DEPTH_MAX 16 /* of a tree */

struct elastic_quotas;

struct elastic_quotas *elastic_quotas_new(void);
void elastic_quotas_free(struct elastic_quotas *quotas);
/* A copy that knows the same of quotas and nothing of pods. Then, pod by pod: which quota the pod asks for, and
 * what it waits for. */
struct elastic_quotas *elastic_quotas_dup(const struct elastic_quotas *quotas);
void elastic_quotas_copy_pod(struct elastic_quotas *quotas, const struct elastic_quotas *from,
                             const char *uid);

/* The namespaces, "a,b", whose quotas may list others, and stand below one another; NULL or "": none. */
void elastic_quotas_trust(struct elastic_quotas *quotas, const char *namespaces);

/* From now on accounts have more than their mins only by pods that reclaim may end (policy/victims/may_end.h);
 * `bare`: also those that no controller creates again. */
void elastic_quotas_lend_reclaimable(struct elastic_quotas *quotas, bool bare);

/* As those of resource_quotas.h; an ElasticQuota and a ResourceQuota of one name are two. `limits` is what the view
 * says. */
struct elastic_limits;
struct elastic_limits *elastic_limits_read(const struct resource_quota_view *view);
void elastic_limits_free(struct elastic_limits *limits); /* NULL is ignored */
bool elastic_quotas_set(struct elastic_quotas *quotas, const struct resource_quota_view *view,
                        struct elastic_limits *limits, uint32_t generation, bool *ret_changed,
                        GError **error);
void elastic_quotas_remove(struct elastic_quotas *quotas, const struct resource_quota_view *view);
bool elastic_quotas_sweep(struct elastic_quotas *quotas, bool elastic, uint32_t generation);

/* A pod waits for a node; the request is copied. Who is known counts anew. */
void elastic_quotas_await(struct elastic_quotas *quotas, const char *uid, const char *ns,
                          const struct request *request);
/* The pod, as it is now: whether reclaim may end it. Ignored if it does not wait. */
void elastic_quotas_tie(struct elastic_quotas *quotas, const struct pod_view *pod);
/* Whether it could come, if others ended: what no node would take counts for nothing. Who has just come to
 * wait could. Returns whether others may then have more. */
bool elastic_quotas_hope(struct elastic_quotas *quotas, const char *uid, bool hope);
/* It waits no more. Whether its namespace has a quota: others may then have more. */
bool elastic_quotas_forget(struct elastic_quotas *quotas, const char *uid);
/* The pod, with UID and namespace, asks to count in that quota; NULL: in none. `node`: where it holds something;
 * or NULL. */
void elastic_quotas_choose(struct elastic_quotas *quotas, const struct pod_view *pod,
                           const char *choice, const char *node);
/* Which one it asks for; NULL: none. Borrowed, until it is told otherwise. */
const char *elastic_quotas_choice(const struct elastic_quotas *quotas, const char *uid);
/* Whether the pod counts where it asks to, or asks for nothing; and how many do not. */
bool elastic_quotas_heeds(const struct elastic_quotas *quotas, const char *uid);
guint elastic_quotas_n_unheeded(const struct elastic_quotas *quotas);
/* Why a pod of the namespace that asks for that quota does not count there, a constant; NULL: it does. */
const char *elastic_choice_fault(const struct elastic_quotas *quotas, const char *ns,
                                 const char *choice);
/* It is gone. */
void elastic_quotas_leave(struct elastic_quotas *quotas, const char *uid);

/* Limits that cannot be kept close what they would have limited. A quota object that cannot be read, or for
 * which there is no room, closes its namespace for all pods with GPUs; a key that is not counted, the quotas that
 * limit it, and those below, for pods that ask for it. Whether a whole namespace is closed; and how many objects
 * and quotas close something. */
bool elastic_quotas_closes(const struct elastic_quotas *quotas, const char *ns);
guint elastic_quotas_n_unkept(const struct elastic_quotas *quotas);
/* Either refuses the pod, wherever it goes. */
bool elastic_quotas_refuse(const struct elastic_quotas *quotas, const struct pod_view *pod,
                           const struct request *request);
/* The same, for people; borrowed. */
struct elastic_unkept {
    const char *ns;
    const char
        *name;       /* of the object, or of a quota of a tree; NULL: all quotas of the namespace */
    const char *key; /* which is not counted, the first; NULL: nothing of the object is kept */
};
void elastic_quotas_each_unkept(const struct elastic_quotas *quotas,
                                void (*visit)(const struct elastic_unkept *unkept, void *data),
                                void *data);

/* Where pods count. Borrowed, until quotas change. */
struct elastic_account;
/* NULL: nowhere, it is not limited. */
const struct elastic_account *elastic_quotas_account(const struct elastic_quotas *quotas,
                                                     const struct pod_view *pod);
const struct elastic_account *
elastic_account_parent(const struct elastic_account *account); /* or NULL */
/* The same of all that lend to each other. */
const struct elastic_account *elastic_account_top(const struct elastic_account *account);
/* "ml", or "ml/quota" of one in a tree. */
const char *elastic_account_id(const struct elastic_account *account);
/* It is a quota of a tree; else all of a namespace. */
bool elastic_account_in_tree(const struct elastic_account *account);

/* Counts what pods hold and wait for, as far as that has changed, whether or not there are quotas. Takes what it has
 * counted, in pods, from `*left`; false: that was used up, and pods are left. */
bool elastic_quotas_catch_up(struct elastic_quotas *quotas, struct ledger *ledger, uint64_t *left);
/* Some quota limits somebody. */
bool elastic_quotas_limit(const struct elastic_quotas *quotas);

/* What an account may still take, for one request. */
struct elastic_room;

/* NULL: whatever it likes. After all is counted. Free before anything is changed. */
struct elastic_room *elastic_quotas_room(struct elastic_quotas *quotas, const struct pod_view *pod,
                                         const struct request *request);
void elastic_room_free(struct elastic_room *room); /* NULL is ignored */
/* An allocation of that namespace was made since; no room (NULL): no limit. */
void elastic_room_take(struct elastic_room *room, const struct allocation *allocation);

/* What an amount of that key is in units: cards, bytes, or those of the resource. */
double elastic_units(const char *key, int64_t amount);

/* Why a quota's place in a tree cannot be told. */
enum quota_fault {
    QUOTA_FAULT_NONE,
    QUOTA_FAULT_NO_PARENT,
    QUOTA_FAULT_PARENT_TWICE,
    QUOTA_FAULT_TREE,
    QUOTA_FAULT_CIRCLE,
    QUOTA_FAULT_DEPTH,
    QUOTA_FAULT_LISTS, /* namespaces, which count elsewhere all the same; its own is limited as it says */
    QUOTA_FAULT_BESIDE, /* of a namespace; its pods count in a tree, and it for nothing */
    QUOTA_FAULT_N
};
/* For JSON, "no_parent"; "" for none. */
const char *quota_fault_code(enum quota_fault fault);
guint elastic_quotas_n_faults(const struct elastic_quotas *quotas);

/* One key of an account. */
struct elastic_count {
    const char *ns, *key;
    const char *quota;  /* of a tree; NULL: all of the namespace */
    const char *parent; /* its name; NULL: none */
    const char *tree;   /* "": it has no name */
    enum quota_fault fault;
    bool keeps; /* lends nothing */
    int64_t min;
    int64_t max;     /* INT64_MAX: none */
    int64_t weight;  /* of a tree */
    int64_t used;    /* held, those included whose Binding is under way */
    int64_t waiting; /* asked for by pods without a node */
    int64_t
        lendable;  /* what it may hold in all while others keep what they need; INT64_MAX: no min */
    int64_t share; /* of what is lent, where several want it; INT64_MAX: that limits nothing */
};

/* A limit that is not kept closes the room (REASON_QUOTA_UNKEPT). */
bool elastic_room_is_closed(const struct elastic_room *room);

/* What keeps reclaim from ending the room's pod, so that it gets nothing of what is lent; 0: nothing, or lending does
 * not depend on it. */
enum pod_tie elastic_room_tie(const struct elastic_room *room);

/* REASON_NONE, _QUOTA_UNKEPT, _QUOTA_MAX, _QUOTA_LENT or _QUOTA_UNRECLAIMABLE: whether there is room for the placement on the node; NULL: for
 * what is asked for, on the node's largest cards. `ret_count` and `ret_wanted`, if not NULL, are of the
 * first key in the way, if it is a max or what is lent. */
enum reason elastic_room_refuse(const struct elastic_room *room, const struct node *node,
                                const struct placement *placement, struct elastic_count *ret_count,
                                int64_t *ret_wanted);

/* The same for amounts by key, as they were measured in a round: a number that is another one after each change of
 * the keys. */
enum reason elastic_room_judge(const struct elastic_room *room, const int64_t *wanted);
void elastic_quotas_measure_placed(const struct elastic_quotas *quotas, const struct node *node,
                                   const struct placement *placement,
                                   int64_t ret_amounts[ELASTIC_KEYS_MAX]);
uint64_t elastic_quotas_round(const struct elastic_quotas *quotas);

/* By key: what pods of the account would have to give back before there is room for what is asked for, on the
 * node's largest cards; and what an allocation would give back, if its pod counts in the account. No room
 * (NULL): nothing. */
void elastic_room_lacks(const struct elastic_room *room, const struct node *node,
                        int64_t ret_lacks[ELASTIC_KEYS_MAX]);
void elastic_room_gives(const struct elastic_room *room, const struct allocation *allocation,
                        int64_t ret_amounts[ELASTIC_KEYS_MAX]);

/* The one limit that is in the way, and what it would have to be. */
struct elastic_raise {
    struct elastic_count count;
    bool max; /* its max; else its min */
    int64_t to;
};
/* False: nothing is in the way, or more than one limit. */
bool elastic_room_raise(const struct elastic_room *room, const struct node *node,
                        const struct placement *placement, struct elastic_raise *ret_raise);

/* "b has borrowed 2, c 1": who has more than its min of the key, the most first, of those that lend to each
 * other; NULL: nobody. Free with g_free. */
char *elastic_room_borrowers(const struct elastic_room *room, const char *key);
/* The account, or one above it, has more than its min of something that is lent. As of the last count. */
bool elastic_account_borrows(const struct elastic_quotas *quotas,
                             const struct elastic_account *account);

/* What an account has, by key, for who works out what is to be given back (policy/reclaim.h). */
struct elastic_sums {
    int64_t min[ELASTIC_KEYS_MAX], max[ELASTIC_KEYS_MAX];
    amount_sum used[ELASTIC_KEYS_MAX];
    amount_sum sure
        [ELASTIC_KEYS_MAX]; /* of what it has: its own, and what those below have within their mins */
};
uint32_t elastic_quotas_n_keys(const struct elastic_quotas *quotas);
/* Somebody has a min for the key, so what is above a min is lent. */
bool elastic_quotas_lends(const struct elastic_quotas *quotas, uint32_t key);
void elastic_quotas_sum(struct elastic_quotas *quotas, struct ledger *ledger,
                        const struct elastic_account *account, struct elastic_sums *ret_sums);
/* What a pod holds, and what it would hold on the node, by key. */
void elastic_quotas_measure(const struct elastic_quotas *quotas,
                            const struct allocation *allocation,
                            int64_t ret_amounts[ELASTIC_KEYS_MAX]);
void elastic_quotas_foresee(const struct elastic_quotas *quotas, const struct node *node,
                            const struct request *request, int64_t ret_amounts[ELASTIC_KEYS_MAX]);

/* What a pod holds in thousandths of a card. */
int64_t elastic_gpus(const struct allocation *allocation);

/* As those of space_sums.h. */
void elastic_verify_begin(struct elastic_quotas *quotas);
void elastic_verify_node(struct elastic_quotas *quotas, const struct ledger *ledger,
                         const struct node *node, quotas_found found, void *data);
void elastic_verify_end(struct elastic_quotas *quotas, quotas_found found, void *data);

/* As quotas_n_counted. */
uint64_t elastic_quotas_n_counted(const struct elastic_quotas *quotas);

/* All accounts and keys, for people, in order of namespace, quota and key. */
void elastic_quotas_each(struct elastic_quotas *quotas, struct ledger *ledger,
                         void (*visit)(const struct elastic_count *count, void *data), void *data);

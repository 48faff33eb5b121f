/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many GPUs of each model a namespace may have, and on which nodes: the ConfigMap that
 * gpu-quota-admission reads. Source: tkestack/gpu-admission before f7d9868.
 *
 * Where it is, a dialect's row says; its text: {"NAMESPACE":{"quota":{"M40":8},"pool":["public"]}}. A
 * namespace that is not named has no limit. One that is may use nodes of the listed models only,
 * labelled so, and of the listed pools if there are any. What its pods hold, of whichever dialect, those
 * included whose Binding is under way, is counted in GPUs: a part of one is that part.
 *
 * Beside them the ResourceQuotas (quota/resource_quotas.h) and the elastic quotas (elastic/elastic_quotas.h), so
 * that there is one question to ask.
 *
 * Guarded by the store's lock.
 */
#include "quota/elastic/elastic_quotas.h"
#include "quota/resource_quotas.h"

struct quotas;

struct quotas *quotas_new(void);
void quotas_free(struct quotas *quotas);
/* A copy that knows the same, but nothing of nodes and pods; and what is known of one node and the pods there, or of
 * one pod that waits. */
struct quotas *quotas_dup(const struct quotas *quotas);
void quotas_copy_node(struct quotas *quotas, const struct quotas *from, const struct node *node);
void quotas_copy_pod(struct quotas *quotas, const struct quotas *from, const char *uid);

/* All limits, and their text; NULL: there are none. To read it no lock is needed. */
struct quotas_text {
    GHashTable *namespaces; /* sums/space_limits.h */
    char *text;
};
/* NULL, with an error: it cannot be read. */
struct quotas_text *quotas_text_read(const char *text, GError **error);
void quotas_text_free(struct quotas_text *text); /* NULL is ignored */
/* Takes the limits and gives those before them for them. Whether the text is another one. */
bool quotas_swap(struct quotas *quotas, struct quotas_text *text);

/* What the node's labels say; NULL for what they do not. */
void quotas_set_node(struct quotas *quotas, const char *node, const char *model, const char *pool);

/* The ResourceQuotas. */
struct resource_quotas *quotas_resources(struct quotas *quotas);
/* The elastic ones. */
struct elastic_quotas *quotas_elastic(const struct quotas *quotas);

/* What pods hold is added up outside of decisions, whether or not there are quotas: quotas_catch_up counts what has
 * changed, `most` pods or those of one node, and gives whether that is all. A decision begins with quotas_begin, which
 * counts QUOTAS_COUNT_MAX at most; false: there is more, and what quotas limit is refused until all is counted
 * (REASON_QUOTA_COUNTING). A copy counts as much as there is. quotas_begin_as: as it was when it was recorded. */
#define QUOTAS_COUNT_MAX 4096
bool quotas_catch_up(struct quotas *quotas, struct ledger *ledger, uint64_t most);
bool quotas_begin(struct quotas *quotas, struct ledger *ledger);
void quotas_begin_as(struct quotas *quotas, struct ledger *ledger, bool counting);
/* For tests: instead of QUOTAS_COUNT_MAX. */
void quotas_set_most(const struct quotas *quotas, uint64_t most);

/* What a namespace may still take, for one request. */
struct quota_room;

/* NULL: whatever it likes. Borrows the request. Free with quota_room_free, before anything is changed. */
struct quota_room *quotas_room(const struct quotas *quotas, struct ledger *ledger,
                               const struct pod_view *pod, const struct request *request);
void quota_room_free(struct quota_room *room); /* NULL is ignored */
typedef struct quota_room quota_room;          /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(quota_room, quota_room_free)

/* REASON_QUOTA: what decides about a node, in GPUs as share_amounts.h has them. */
struct quota_count {
    const char *model; /* NULL: no label of the node says one */
    bool pooled;       /* the node is of a pool that the namespace may use */
    bool limited;      /* the namespace has a limit for that model */
    int64_t limit, used, wanted;
};
void quota_room_count(const struct quota_room *room, const struct node *node,
                      struct quota_count *ret_count);

/* REASON_RESOURCE_QUOTA: the same. */
const struct resource_room *quota_room_resources(const struct quota_room *room);

/* REASON_QUOTA_MAX, REASON_QUOTA_LENT: the same. What others give back counts. */
const struct elastic_room *quota_room_elastic(const struct quota_room *room);

/* The allocation was made since the room was measured. */
void quota_room_take(struct quota_room *room, struct allocation *allocation);

/* REASON_NONE: the request may go to the node, as it was placed there; `placement` NULL: on its
 * largest cards. No room (NULL) means no limit. */
enum reason quota_room_refuse(const struct quota_room *room, const struct node *node,
                              const struct placement *placement);

/* The number of what the request would count as it was placed there (quota/sums/quota_wants.h), for namespaces with
 * other quotas as well; and the same answer again by number: false, if it is forgotten. */
uint64_t quota_room_number(const struct quota_room *room, const struct node *node,
                           const struct placement *placement);
bool quota_room_judge(struct quota_room *room, uint64_t number, enum reason *ret_reason);

/* What pods that count where the request's pod counts would have to give back, by limit, before the request may
 * go to the node; false: nothing that they give back lets it. And what one of them that is on the node would
 * give back. */
#define QUOTA_AMOUNTS_MAX (1 + RESOURCE_AMOUNTS + ELASTIC_KEYS_MAX)
bool quota_room_lacks(const struct quota_room *room, const struct node *node,
                      int64_t ret_lacks[QUOTA_AMOUNTS_MAX]);
void quota_room_gives(const struct quota_room *room, const struct allocation *allocation,
                      int64_t ret_amounts[QUOTA_AMOUNTS_MAX]);

/* A limit by model, for people; borrowed. In thousandths of a GPU. */
struct model_limit {
    const char *ns, *model;
    int64_t limit;
};
void quotas_each(const struct quotas *quotas,
                 void (*visit)(const struct model_limit *limit, void *data), void *data);

/* What an allocation counts towards its namespace's limit for that model, as share_amounts.h has it. */
int64_t quotas_count(const struct quotas *quotas, const struct allocation *allocation,
                     const char *model);

/* As those of space_sums.h, for all quotas. A namespace whose sum is found wrong is refused what its quotas limit
 * (REASON_QUOTA_UNKEPT) until a verification finds it right: its end says whether all are. */
void quotas_verify_begin(struct quotas *quotas);
void quotas_verify_node(struct quotas *quotas, const struct ledger *ledger,
                        const struct node *node);
bool quotas_verify_end(struct quotas *quotas);
guint quotas_n_wrong(const struct quotas *quotas);

/* How many allocations were looked at for sums, and nodes for pods that wait, ever: what a call costs beside others. */
uint64_t quotas_n_counted(const struct quotas *quotas);

/* The ResourceQuotas, to be looked at. */
const struct resource_quotas *quotas_see_resources(const struct quotas *quotas);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What elastic quotas are made of, for the files of this folder alone. */
#include "quota/elastic/elastic_quotas.h"
#include "quota/sums/node_tallies.h"
#include "quota/share_amounts.h"

#include <gpuledger/ledger.h>

#define KEY_GPUS "gpuledger.io/gpus"
#define KEY_MEMORY "gpuledger.io/gpu-memory"

/* What one unit of a key other than memory is in amounts. */
static inline int64_t elastic_unit(const char *key)
{
    return g_strcmp0(key, KEY_GPUS) == 0 ? SHARE_UNIT : 1000;
}

/* One key of one object. */
struct limit {
    const char *key;          /* interned */
    int64_t min, max, weight; /* -1: not said */
};

/* An object that says something. */
struct quota {
    bool elastic;
    char *ns, *name;
    uint32_t generation;
    GArray *limits; /* struct limit */
    bool inside, is_parent, keeps;
    char *parent, *tree; /* NULL: at the top; "" */
    char **namespaces;   /* or NULL */
};

/* Where pods are counted: a namespace with all its quotas, a quota of a tree, or, nameless, what all of a
 * tree share. */
struct elastic_account {
    char *
        id; /* "NAMESPACE" or "NAMESPACE/QUOTA", in which order they are shown; "" of a tree's whole */
    char *ns, *name;           /* name NULL: a namespace */
    const struct quota *quota; /* of a tree; NULL: a namespace */
    const char *tree;          /* interned */
    struct elastic_account *parent;
    enum quota_fault fault;
    uint32_t place, depth; /* among all; below the whole */
    bool whole, weighted, keeps;
    int64_t min[ELASTIC_KEYS_MAX], max[ELASTIC_KEYS_MAX];
    GPtrArray *unkept;           /* const char *, its keys that are not counted */
    bool said[ELASTIC_KEYS_MAX]; /* it has a min of its own */
    int64_t weight[ELASTIC_KEYS_MAX];
    amount_sum tied_sum[ELASTIC_KEYS_MAX]; /* of what waits here, and not below, what is tied */
    amount_sum used_sum[ELASTIC_KEYS_MAX], waiting_sum[ELASTIC_KEYS_MAX]; /* with those below */
    int64_t used[ELASTIC_KEYS_MAX], waiting[ELASTIC_KEYS_MAX];            /* the same, told */
};

/* What follows for an account from those below it and beside it, for one key. */
struct outlook {
    amount_sum used_below, waiting_below, demand_below, over_below, kept_below;
    amount_sum demand;   /* what it has and wants */
    amount_sum kept;     /* of it, what nobody else may have */
    amount_sum lendable; /* what it may have in all while others keep what they need */
};

/* Whose pods are added up together: those of a namespace that ask for the same quota, by each key that they have
 * something of. Quotas may change, and the keys that they name, and no pod is looked at for it. */
struct holder {
    char *ns, *choice;               /* choice NULL: they ask for none */
    struct elastic_account *account; /* NULL: they count nowhere */
    GPtrArray *sums;                 /* struct holder_sum * */
};
struct holder_sum {
    struct holder *holder;
    char *key;
    guint n_parts; /* that name it */
    amount_sum sum;
    amount_sum check; /* of the verification under way */
};

/* What the pods of one node hold. */
struct part {
    struct holder_sum *of;
    int64_t amount;
};
struct tally {
    GArray *parts;     /* struct part */
    uint64_t verified; /* in the round of that number; 0: in none */
};

/* A pod of which no watch has said that it has a node. It may hold something already: what it asks for
 * counts no more then. */
struct waiter {
    const char *uid; /* the table's */
    char *ns;
    struct request *request;
    bool hopeless;             /* it cannot come, whatever ends: nothing is kept for it */
    enum pod_tie tie;          /* elastic_room_tie */
    struct waiting_kind *kind; /* NULL: it is not counted */
};

/* Pods that wait alike: of one namespace, asking for one quota and for the same. */
#define WAITING_KINDS_MAX 256 /* of one namespace; nothing is kept for pods of others */
struct waiting_kind {
    char *ns, *choice; /* choice NULL: they ask for none */
    struct request *request;
    enum pod_tie tie;
    guint n;                         /* pods */
    struct elastic_account *account; /* they count there; NULL: not yet, or nowhere */
    int64_t amounts[ELASTIC_KEYS_MAX];
};

/* Which quota pods of a namespace ask for. */
struct choice {
    char *ns, *quota;
    guint n;       /* pods */
    bool unheeded; /* they count elsewhere, or nowhere */
};

struct elastic_quotas {
    GHashTable *trusted; /* a set of namespaces (elastic_quotas_trust); replaced, never changed */
    bool reclaimable, bare; /* elastic_quotas_lend_reclaimable */
    GPtrArray *all;         /* struct quota * */
    GHashTable
        *unkept[2]; /* namespace -> struct unkept_space * (unkept.c); of ElasticQuotas the second */
    GPtrArray *keys; /* const char *, interned: those that some quota names, and that are counted */
    GPtrArray *accounts; /* struct elastic_account *, parents before those below them */
    GHashTable *doors;   /* namespace -> GPtrArray of accounts for its pods, the first by default */
    GHashTable *choices; /* uid -> struct choice * */
    GHashTable *chosen;  /* a set of struct choice * */
    guint n_unheeded;    /* pods */
    bool min[ELASTIC_KEYS_MAX]; /* somebody has one */
    struct node_tallies counted;
    GPtrArray *tallies;  /* struct tally *, by place in the ledger */
    GHashTable *holders; /* a set of struct holder * */
    GHashTable *waiters; /* uid -> struct waiter * */
    GHashTable
        *fresh; /* a set of struct waiter *: not counted yet, or not while they hold something */
    GHashTable *kinds;                          /* a set of struct waiting_kind * */
    GHashTable *n_kinds;                        /* namespace -> of them */
    GHashTable *uncounted;                      /* a set of those that are to be counted */
    uint64_t supply;                            /* ledger_supply, as kinds were measured */
    struct outlook *outlooks[ELASTIC_KEYS_MAX]; /* of all accounts, by key */
    uint64_t round;                             /* counts changes of the keys */
    uint64_t
        n_examined; /* pods that wait, their kinds, and nodes for these, ever: for tests of the work */
    uint64_t verifying; /* the number of the verification under way, or of the last; from 1 on */
    bool looked[ELASTIC_KEYS_MAX]; /* they are of the sums as they are */
};

/* limits.c: what an object says. NULL, with an error: it cannot be read. Free with quota_free. */
struct quota *elastic_limits_take(struct elastic_limits *limits, GError **error);
struct quota *quota_dup(const struct quota *quota);
void quota_free(gpointer quota);
bool quota_is_same(const struct quota *one, const struct quota *other);
/* It limits nobody and is in no tree. */
bool quota_is_idle(const struct quota *quota);

/* elastic_quotas.c: what keeps the pod from being lent anything; 0: nothing. */
enum pod_tie elastic_tie_of(const struct elastic_quotas *quotas, const struct pod_view *pod);

/* tree.c: makes the accounts anew from all quotas. */
void accounts_make(struct elastic_quotas *quotas);
void account_free(gpointer account);
/* Where the pod counts; `choice` NULL: it asks for no quota. NULL: nowhere. */
struct elastic_account *accounts_find(const struct elastic_quotas *quotas, const char *ns,
                                      const char *choice);

/* unkept.c: objects that cannot be kept. They close their namespaces. */
GHashTable *unkept_new(void);
void unkept_set(struct elastic_quotas *quotas, bool elastic, const char *ns, const char *name,
                uint32_t generation);
/* These two: whether there were any. */
bool unkept_remove(struct elastic_quotas *quotas, bool elastic, const char *ns, const char *name);
bool unkept_sweep(struct elastic_quotas *quotas, bool elastic, uint32_t generation);
void unkept_copy(struct elastic_quotas *quotas, const struct elastic_quotas *from);
/* There is room for one more quota, of that namespace: if need be, the last one of the namespace with the most
 * is kept no more. */
bool unkept_make_room(struct elastic_quotas *quotas, const char *ns);

/* keys.c: the keys that are counted, in order. Those that were stay while there is room, named or not: for another
 * set of keys all that was measured in the round is forgotten. */
GPtrArray *keys_choose(const struct elastic_quotas *quotas);
/* The account limits what the request asks for by a key that is not counted. */
bool unkept_concerns(const struct elastic_account *account, const struct request *request);

/* room.c: where the room's pod counts, NULL: it is not limited; and from its own account on upwards, how many are not
 * sure of what the pod would hold on the node's largest cards. */
const struct elastic_account *elastic_room_account(const struct elastic_room *room);
struct elastic_quotas *elastic_room_quotas(const struct elastic_room *room);
guint elastic_room_unsure(const struct elastic_room *room, const struct node *node);

/* waiting.c */
void waiter_free(gpointer waiter);
guint waiting_kind_hash(gconstpointer kind);
gboolean waiting_kind_equal(gconstpointer one, gconstpointer other);
void waiting_kind_free(gpointer kind);
/* It counts no more, until it is fresh again. */
void elastic_uncount(struct elastic_quotas *quotas, struct waiter *waiter);
/* All are to be counted anew; `anew`: the accounts are new, and nothing counts there. */
void elastic_uncount_kinds(struct elastic_quotas *quotas, bool anew);
/* After what is held: whoever holds something counts there. As elastic_quotas_catch_up. */
bool elastic_count_waiters(struct elastic_quotas *quotas, struct ledger *ledger, uint64_t *left);

/* choices.c */
guint choice_hash(gconstpointer choice);
gboolean choice_equal(gconstpointer one, gconstpointer other);
void choice_free(gpointer choice);
/* After the accounts were made anew. */
void choices_weigh(struct elastic_quotas *quotas);
/* NULL: it asks for none. */
void choices_set(struct elastic_quotas *quotas, const struct pod_view *pod, const char *quota);
/* Of one pod. */
void choices_copy(struct elastic_quotas *quotas, const struct elastic_quotas *from,
                  const char *uid);

/* counting.c */
int64_t elastic_amount(const char *key, const struct allocation *allocation);
/* holders.c: elastic_quotas_catch_up, of whatever there is. */
void elastic_count_all(struct elastic_quotas *quotas, struct ledger *ledger);
void tally_free(gpointer tally);
guint holder_hash(gconstpointer holder);
gboolean holder_equal(gconstpointer one, gconstpointer other);
void holder_free(gpointer holder);
/* After the accounts were made anew, for the same keys or for others. */
void elastic_settle_holders(struct elastic_quotas *quotas);
/* What the pods of the node hold now; struct part. They name sums until they are released. */
GArray *elastic_count_parts(struct elastic_quotas *quotas, const struct node *node);
void elastic_release_parts(struct elastic_quotas *quotas, const GArray *parts);
/* By key; of a request where it would be on that node. */
void elastic_measure_request(const struct elastic_quotas *quotas, const struct node *node,
                             const struct request *request, int64_t *ret_amounts);

void elastic_measure_placement(const struct elastic_quotas *quotas, const struct node *node,
                               const struct placement *placement, int64_t *ret_amounts);

/* lending.c: brings quotas->outlooks up to date for a key; used and waiting are up to date. */
void lending_look(struct elastic_quotas *quotas, guint key);
/* A sum has changed: it is out of date for all keys. */
void elastic_note_change(struct elastic_quotas *quotas);
/* What the account may have of what several below one parent want; INT64_MAX: whatever is lendable. And
 * whether none of those who want more has less, for its weight. After lending_look. */
int64_t lending_share(const struct elastic_quotas *quotas, const struct elastic_account *account,
                      guint key, bool *ret_least);

/* One key of an account, but for what is lendable. */
struct elastic_count elastic_count_of(const struct elastic_quotas *quotas,
                                      const struct elastic_account *account, guint key);

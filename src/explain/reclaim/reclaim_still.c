/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was found out for a claim still holds. */
#include "explain/reclaim/reclaim_path.h"
#include "policy/reclaim.h"
#include "queue/pod_rules.h"
#include "queue/reservation.h"

#include <string.h>

static struct pod_view view_of(const struct allocation *allocation)
{
    return (struct pod_view){.uid = allocation->uid, .ns = allocation->ns};
}

/* What the pod would hold on the node, by key; false: it cannot be told. */
static bool foresee(struct store *store, const struct node *node, const char *uid,
                    int64_t wanted[ELASTIC_KEYS_MAX])
{
    const struct request *request = store_pending(store, uid);
    const struct request *asks = node && request ? reservation_read_for(node, request) : NULL;

    if (asks)
        elastic_quotas_foresee(quotas_elastic(store_quotas(store)), node, asks, wanted);
    return asks != NULL;
}

/* From which account of its path on upwards the pod is sure of what it would hold there; false: of none. */
static bool find_sure(struct store *store, const struct node *node, const char *uid,
                      const struct reclaim_path *path, guint *ret_from)
{
    int64_t wanted[ELASTIC_KEYS_MAX];

    return path->n > 0 && foresee(store, node, uid, wanted) &&
           reclaim_path_weigh(quotas_elastic(store_quotas(store)), path, wanted, ret_from) ==
               RECLAIM_FOUND;
}

struct reclaim_promises {
    GHashTable *sums; /* account of the claimants -> amount_sum[ELASTIC_KEYS_MAX] */
};

struct reclaim_promises *reclaim_promises_new(void)
{
    struct reclaim_promises *promises = g_new(struct reclaim_promises, 1);

    promises->sums = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return promises;
}

void reclaim_promises_free(struct reclaim_promises *promises)
{
    if (promises)
        g_hash_table_unref(promises->sums);
    g_free(promises);
}

/* What the account was promised before counts as held, there and above. */
static amount_sum *promised_to(struct reclaim_promises *promises, struct reclaim_path *path)
{
    amount_sum *sums = g_hash_table_lookup(promises->sums, path->accounts[0]);

    if (!sums) {
        sums = g_new0(amount_sum, ELASTIC_KEYS_MAX);
        g_hash_table_insert(promises->sums, (gpointer)path->accounts[0], sums);
    }
    for (guint i = 0; i < path->n; i++)
        path->going[i] = sums;
    return sums;
}

bool reclaim_is_sure(struct store *store, struct reclaim_promises *promises, const char *node,
                     const char *uid)
{
    struct ledger *ledger = store_ledger(store);
    const struct node *at = ledger_node(ledger, node);
    const struct pod_rules *rules = store_rules(store, uid);
    int64_t wanted[ELASTIC_KEYS_MAX];
    struct reclaim_path path;
    guint from;

    if (!rules)
        return false;
    reclaim_path_find(quotas_elastic(store_quotas(store)), ledger, NULL,
                      &(struct pod_view){.uid = uid, .ns = rules->ns}, &path);
    if (path.n == 0)
        return false;
    amount_sum *promised = promised_to(promises, &path);
    if (!find_sure(store, at, uid, &path, &from) || !foresee(store, at, uid, wanted))
        return false;
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++)
        promised[key] += wanted[key];
    return true;
}

/* The accounts above a pod that ends, up to where they meet the claimant's, and what they have without those
 * that end already. */
struct giving {
    struct elastic_quotas *quotas;
    const struct elastic_account *accounts[RECLAIM_LEVELS_MAX];
    struct borrower borrowers[RECLAIM_LEVELS_MAX];
    guint n;
};

/* False: it does not lend to the claimant what that is sure of. What a claimant holds already it was sure of. */
static bool find_giving(struct giving *giving, struct store *store, const struct allocation *ending,
                        const struct pod_view *claimant)
{
    const struct pod_view pod = view_of(ending);
    const struct elastic_account *at = elastic_quotas_account(giving->quotas, &pod);
    struct ledger *ledger = store_ledger(store);
    struct reclaim_path path;
    guint from = 0;

    reclaim_path_find(giving->quotas, ledger, NULL, claimant, &path);
    if (!at || path.n == 0 || elastic_quotas_closes(giving->quotas, claimant->ns) ||
        (!ledger_get(ledger, claimant->uid) &&
         !find_sure(store, ending->node, claimant->uid, &path, &from)) ||
        reclaim_path_meets(&path, at) <= (int)from)
        return false;
    for (; at && !reclaim_path_has(&path, at); at = elastic_account_parent(at)) {
        struct borrower *borrower = &giving->borrowers[giving->n];
        struct elastic_sums sums;
        elastic_quotas_sum(giving->quotas, ledger, at, &sums);
        memcpy(borrower->held, sums.used, sizeof sums.used);
        memcpy(borrower->min, sums.min, sizeof sums.min);
        if (giving->n > 0)
            giving->borrowers[giving->n - 1].parent = borrower;
        giving->accounts[giving->n++] = at;
    }
    return true;
}

/* It has ended, as good as. */
static void take_off(struct giving *giving, const struct allocation *one)
{
    const struct pod_view pod = view_of(one);
    const struct elastic_account *at = elastic_quotas_account(giving->quotas, &pod);
    int64_t amounts[ELASTIC_KEYS_MAX];

    elastic_quotas_measure(giving->quotas, one, amounts);
    for (; at; at = elastic_account_parent(at)) {
        for (guint i = 0; i < giving->n; i++) {
            if (giving->accounts[i] != at)
                continue;
            borrower_give(&giving->borrowers[i], amounts, ELASTIC_KEYS_MAX, 1);
            return;
        }
    }
}

bool reclaim_may_end(struct store *store, GHashTable *going, const struct pod_view *claimant,
                     const char *node, const char *uid)
{
    struct ledger *ledger = store_ledger(store);
    struct giving giving = {.quotas = quotas_elastic(store_quotas(store))};
    const struct allocation *ending = ledger_get(ledger, uid);
    int64_t amounts[ELASTIC_KEYS_MAX];
    const GPtrArray *nodes = ledger_nodes(ledger);

    if (!ending || !g_str_equal(ending->node->name, node) ||
        !find_giving(&giving, store, ending, claimant))
        return false;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *at = nodes->pdata[i];
        for (guint j = 0; j < at->allocations->len; j++) {
            const struct allocation *one = at->allocations->pdata[j];
            if (one != ending && (one->terminating || g_hash_table_contains(going, one->uid)))
                take_off(&giving, one);
        }
    }
    elastic_quotas_measure(giving.quotas, ending, amounts);
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++) {
        if (!elastic_quotas_lends(giving.quotas, (uint32_t)key))
            amounts[key] = 0;
    }
    return borrower_may_give(&giving.borrowers[0], amounts, ELASTIC_KEYS_MAX);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/reclaim/reclaim_path.h"

void reclaim_path_find(struct elastic_quotas *quotas, struct ledger *ledger, GHashTable *going,
                       const struct pod_view *pod, struct reclaim_path *ret_path)
{
    const struct elastic_account *at = elastic_quotas_account(quotas, pod);

    for (ret_path->n = 0; at && ret_path->n < RECLAIM_LEVELS_MAX; at = elastic_account_parent(at)) {
        elastic_quotas_sum(quotas, ledger, at, &ret_path->sums[ret_path->n]);
        ret_path->going[ret_path->n] = going ? g_hash_table_lookup(going, at) : NULL;
        ret_path->accounts[ret_path->n++] = at;
    }
}

/* What an account has of what it is sure of, with so much more: of the one below it, what that has within its own
 * min. */
static amount_sum surely(const struct reclaim_path *path, guint at, uint32_t key, int64_t wanted)
{
    const struct elastic_sums *sums = &path->sums[at], *below = sums - 1;
    const amount_sum going = path->going[at] ? path->going[at][key] : 0;

    if (at == 0)
        return sums->sure[key] + going + wanted;
    const amount_sum going_below = path->going[at - 1] ? path->going[at - 1][key] : 0;
    return sums->sure[key] + going - going_below +
           MIN(below->used[key] + going_below + wanted, below->min[key]) -
           MIN(below->used[key], below->min[key]);
}

/* From where on upwards so much more of a key is sure; the path's length: nowhere. What is borrowed below is
 * an account's own business up to its min. */
static guint sure_from(const struct reclaim_path *path, uint32_t key, int64_t wanted)
{
    bool sure = true;
    guint from = 0;

    for (guint i = 0; i < path->n; i++) {
        const struct elastic_sums *sums = &path->sums[i];
        const amount_sum all =
            sums->used[key] + (path->going[i] ? path->going[i][key] : 0) + wanted;
        sure = (sure ? surely(path, i, key, wanted) : all) <= sums->min[key];
        if (!sure)
            from = i + 1;
    }
    return from;
}

enum reclaim_answer reclaim_path_weigh(const struct elastic_quotas *quotas,
                                       const struct reclaim_path *path, const int64_t *wanted,
                                       guint *ret_from)
{
    bool sure = false;

    *ret_from = 0;
    for (uint32_t key = 0; key < elastic_quotas_n_keys(quotas); key++) {
        if (wanted[key] == 0 || !elastic_quotas_lends(quotas, key))
            continue;
        for (guint i = 0; i < path->n; i++)
            sure |= path->sums[i].min[key] > 0;
        *ret_from = MAX(*ret_from, sure_from(path, key, wanted[key]));
    }
    if (!sure)
        return RECLAIM_NO_MIN;
    return *ret_from < path->n ? RECLAIM_FOUND : RECLAIM_ABOVE_MIN;
}

int reclaim_path_meets(const struct reclaim_path *path, const struct elastic_account *account)
{
    if (elastic_account_top(account) != elastic_account_top(path->accounts[0]))
        return -1;
    for (; account; account = elastic_account_parent(account)) {
        for (guint i = 0; i < path->n; i++) {
            if (path->accounts[i] == account)
                return (int)i;
        }
    }
    return (int)path->n;
}

bool reclaim_path_has(const struct reclaim_path *path, const struct elastic_account *account)
{
    for (guint i = 0; i < path->n; i++) {
        if (path->accounts[i] == account)
            return true;
    }
    return false;
}

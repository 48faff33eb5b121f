/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up again what is kept of pods, a node at a time, while others go on: what changes of a node that was visited
 * changes the second sum as well (holders.c).
 */
#include "queue/elastic/elastic_state.h"

#include <string.h>

void elastic_verify_begin(struct elastic_quotas *quotas)
{
    GHashTableIter iter;
    gpointer holder;

    quotas->verifying++;
    g_hash_table_iter_init(&iter, quotas->holders);
    while (g_hash_table_iter_next(&iter, &holder, NULL))
        memset(((struct holder *)holder)->check, 0, sizeof((struct holder *)holder)->check);
}

static void visit(struct elastic_quotas *quotas, struct tally *tally)
{
    const guint n = quotas->keys->len;

    if (!tally || tally->verified == quotas->verifying)
        return;
    tally->verified = quotas->verifying;
    for (guint i = 0; i < tally->holders->len; i++) {
        struct holder *holder = tally->holders->pdata[i];
        for (guint key = 0; key < n; key++)
            holder->check[key] += g_array_index(tally->amounts, int64_t, i *n + key);
    }
}

/* What the pods of the holder on the node hold now. */
static bool is_right(const struct elastic_quotas *quotas, const struct node *node,
                     const struct holder *holder, const int64_t *amounts)
{
    int64_t again[ELASTIC_KEYS_MAX] = {0};

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *pod = node->allocations->pdata[i];
        if (!g_str_equal(pod->ns, holder->ns) ||
            g_strcmp0(elastic_quotas_choice(quotas, pod->uid), holder->choice) != 0)
            continue;
        for (guint key = 0; key < quotas->keys->len; key++)
            again[key] = amount_add(again[key], elastic_amount(quotas, key, pod));
    }
    return quotas->keys->len == 0 || memcmp(again, amounts, quotas->keys->len * sizeof *again) == 0;
}

void elastic_verify_node(struct elastic_quotas *quotas, const struct ledger *ledger,
                         const struct node *node, quotas_found found, void *data)
{
    const uint32_t place = node_own(node)->place;
    const guint n = quotas->keys->len;
    struct tally *tally = place < quotas->tallies->len ? quotas->tallies->pdata[place] : NULL;

    if (!tally)
        return;
    visit(quotas, tally);
    if (!node_tallies_are_current(&quotas->counted, ledger, place))
        return; /* it will be counted before it is asked for */
    for (guint i = 0; i < tally->holders->len; i++) {
        const struct holder *holder = tally->holders->pdata[i];
        if (!is_right(quotas, node, holder, &g_array_index(tally->amounts, int64_t, i *n)))
            found(holder->ns, data);
    }
}

/* What accounts have is what holders have that count there. */
static void verify_accounts(struct elastic_quotas *quotas, guint key, quotas_found found,
                            void *data)
{
    g_autofree amount_sum *sums = g_new0(amount_sum, quotas->accounts->len + 1);
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, quotas->holders);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        const struct holder *holder = value;
        for (const struct elastic_account *at = holder->account; at; at = at->parent)
            sums[at->place] += holder->sums[key];
    }
    g_hash_table_iter_init(&iter, quotas->holders);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        const struct holder *holder = value;
        bool right = holder->sums[key] == holder->check[key];
        for (const struct elastic_account *at = holder->account; at; at = at->parent)
            right &= sums[at->place] == at->used_sum[key];
        if (!right)
            found(holder->ns, data);
    }
}

void elastic_verify_end(struct elastic_quotas *quotas, quotas_found found, void *data)
{
    for (guint i = 0; i < quotas->tallies->len; i++)
        visit(quotas, quotas->tallies->pdata[i]);
    for (guint key = 0; key < quotas->keys->len; key++)
        verify_accounts(quotas, key, found, data);
}

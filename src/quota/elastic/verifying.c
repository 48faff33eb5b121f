/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up again what is kept of pods, a node at a time, while others go on: what changes of a node that was visited
 * changes the second sum as well (holders.c).
 */
#include "quota/elastic/elastic_state.h"

static void each_sum(struct elastic_quotas *quotas,
                     void (*visit)(struct holder_sum *sum, void *data), void *data)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, quotas->holders);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        const struct holder *holder = value;
        for (guint i = 0; i < holder->sums->len; i++)
            visit(holder->sums->pdata[i], data);
    }
}

static void clear_check(struct holder_sum *sum, void *data)
{
    sum->check = 0;
}

void elastic_verify_begin(struct elastic_quotas *quotas)
{
    quotas->verifying++;
    each_sum(quotas, clear_check, NULL);
}

static void visit(struct elastic_quotas *quotas, struct tally *tally)
{
    if (!tally || tally->verified == quotas->verifying)
        return;
    tally->verified = quotas->verifying;
    for (guint i = 0; i < tally->parts->len; i++) {
        const struct part *part = &g_array_index(tally->parts, struct part, i);
        part->of->check += part->amount;
    }
}

void elastic_verify_node(struct elastic_quotas *quotas, const struct ledger *ledger,
                         const struct node *node, quotas_found found, void *data)
{
    const uint32_t place = node_own(node)->place;
    struct tally *tally = place < quotas->tallies->len ? quotas->tallies->pdata[place] : NULL;

    if (!tally)
        return;
    visit(quotas, tally);
    if (!node_tallies_are_current(&quotas->counted, ledger, place))
        return; /* it will be counted before it is asked for */
    g_autoptr(GArray) again = elastic_count_parts(quotas, node);
    for (guint i = 0; i < MAX(again->len, tally->parts->len); i++) {
        const struct part *left = &g_array_index(again, struct part, i);
        const struct part *right = &g_array_index(tally->parts, struct part, i);
        const bool same = i < again->len && i < tally->parts->len && left->of == right->of &&
                          left->amount == right->amount;
        if (i < again->len && !same)
            found(left->of->holder->ns, data);
        if (i < tally->parts->len && !same)
            found(right->of->holder->ns, data);
    }
    elastic_release_parts(quotas, again);
}

/* What accounts have of a key is what holders have that count there. */
struct key_check {
    const struct elastic_quotas *quotas;
    guint key;
    amount_sum *sums; /* by the place of the account */
    quotas_found found;
    void *data;
};

static bool is_of_key(const struct key_check *check, const struct holder_sum *sum)
{
    return g_str_equal(sum->key, check->quotas->keys->pdata[check->key]);
}

static void add_up(struct holder_sum *sum, void *data)
{
    const struct key_check *check = data;

    for (const struct elastic_account *at = sum->holder->account; at && is_of_key(check, sum);
         at = at->parent)
        check->sums[at->place] += sum->sum;
}

static void compare(struct holder_sum *sum, void *data)
{
    const struct key_check *check = data;
    bool right = sum->sum == sum->check;

    for (const struct elastic_account *at = sum->holder->account; at && is_of_key(check, sum);
         at = at->parent)
        right &= check->sums[at->place] == at->used_sum[check->key];
    if (!right)
        check->found(sum->holder->ns, check->data);
}

static void verify_accounts(struct elastic_quotas *quotas, guint key, quotas_found found,
                            void *data)
{
    g_autofree amount_sum *sums = g_new0(amount_sum, quotas->accounts->len + 1);
    struct key_check check = {quotas, key, sums, found, data};

    each_sum(quotas, add_up, &check);
    each_sum(quotas, compare, &check);
}

void elastic_verify_end(struct elastic_quotas *quotas, quotas_found found, void *data)
{
    for (guint i = 0; i < quotas->tallies->len; i++)
        visit(quotas, quotas->tallies->pdata[i]);
    for (guint key = 0; key < quotas->keys->len; key++)
        verify_accounts(quotas, key, found, data);
}

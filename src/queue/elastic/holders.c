/* SPDX-License-Identifier: Apache-2.0 */
/* What pods hold, added up by whose they are, as nodes change. */
#include "queue/elastic/elastic_state.h"

guint holder_hash(gconstpointer data)
{
    const struct holder *holder = data;

    return g_str_hash(holder->ns) * 31 + (holder->choice ? g_str_hash(holder->choice) : 0);
}

gboolean holder_equal(gconstpointer one, gconstpointer other)
{
    const struct holder *left = one, *right = other;

    return g_str_equal(left->ns, right->ns) && g_strcmp0(left->choice, right->choice) == 0;
}

void holder_free(gpointer data)
{
    struct holder *holder = data;

    g_free(holder->ns);
    g_free(holder->choice);
    g_free(holder);
}

static struct holder *find_holder(struct elastic_quotas *quotas, const char *ns, const char *choice)
{
    const struct holder wanted = {.ns = (char *)ns, .choice = (char *)choice};
    struct holder *holder = NULL;

    if (g_hash_table_lookup_extended(quotas->holders, &wanted, (gpointer *)&holder, NULL))
        return holder;
    holder = g_new0(struct holder, 1);
    holder->ns = g_strdup(ns);
    holder->choice = g_strdup(choice);
    holder->account = accounts_find(quotas, ns, choice);
    g_hash_table_add(quotas->holders, holder);
    return holder;
}

/* --- sums ------------------------------------------------------------------------------------- */

static void add_to_account(const struct elastic_quotas *quotas, struct elastic_account *account,
                           guint key, amount_sum amount)
{
    for (struct elastic_account *at = account; at; at = at->parent) {
        at->used_sum[key] += amount;
        at->used[key] = amount_sum_told(at->used_sum[key]);
    }
}

static void add_parts(struct elastic_quotas *quotas, const struct tally *tally, int sign)
{
    const guint n = quotas->keys->len;

    for (guint i = 0; i < tally->holders->len; i++) {
        struct holder *holder = tally->holders->pdata[i];
        const int64_t *amounts = &g_array_index(tally->amounts, int64_t, i *n);
        for (guint key = 0; key < n; key++) {
            const amount_sum amount = (amount_sum)amounts[key] * sign;
            holder->sums[key] += amount;
            if (tally->verified == quotas->verifying)
                holder->check[key] += amount;
            add_to_account(quotas, holder->account, key, amount);
        }
    }
    if (tally->holders->len > 0)
        elastic_note_change(quotas);
}

/* Its place among the tally's. */
static guint part_of(struct elastic_quotas *quotas, struct tally *tally, const char *ns,
                     const char *choice)
{
    for (guint i = 0; i < tally->holders->len; i++) {
        const struct holder *holder = tally->holders->pdata[i];
        if (g_str_equal(holder->ns, ns) && g_strcmp0(holder->choice, choice) == 0)
            return i;
    }
    struct holder *holder = find_holder(quotas, ns, choice);
    holder->n_tallies++;
    g_ptr_array_add(tally->holders, holder);
    g_array_set_size(tally->amounts, tally->holders->len * quotas->keys->len);
    return tally->holders->len - 1;
}

static void release(struct elastic_quotas *quotas, const GPtrArray *holders)
{
    for (guint i = 0; i < holders->len; i++) {
        struct holder *holder = holders->pdata[i];
        if (--holder->n_tallies == 0)
            g_hash_table_remove(quotas->holders, holder);
    }
}

/* --- nodes ------------------------------------------------------------------------------------ */

static struct tally *reach(struct elastic_quotas *quotas, uint32_t place)
{
    if (quotas->tallies->len <= place)
        g_ptr_array_set_size(quotas->tallies, (gint)place + 1);
    struct tally *tally = quotas->tallies->pdata[place];
    if (!tally) {
        tally = g_new0(struct tally, 1);
        tally->holders = g_ptr_array_new();
        tally->amounts = g_array_new(FALSE, TRUE, sizeof(int64_t));
        quotas->tallies->pdata[place] = tally;
    }
    return tally;
}

/* The pod that was measured last. */
struct measured {
    const struct allocation *pod; /* NULL: none */
    int64_t amounts[ELASTIC_KEYS_MAX];
};

static void count_pod(struct elastic_quotas *quotas, const struct allocation *pod,
                      struct measured *measured, struct tally *tally)
{
    const guint n = quotas->keys->len;
    const guint part = part_of(quotas, tally, pod->ns, elastic_quotas_choice(quotas, pod->uid));

    if (!measured->pod || !share_pods_are_alike(measured->pod, pod)) {
        for (guint key = 0; key < n; key++)
            measured->amounts[key] = elastic_amount(quotas, key, pod);
        measured->pod = pod;
    }
    for (guint key = 0; key < n; key++) {
        int64_t *amount = &g_array_index(tally->amounts, int64_t, part *n + key);
        *amount = amount_add(*amount, measured->amounts[key]);
    }
}

/* Whoever holds something waits no more, until it holds nothing. */
static void meet(struct elastic_quotas *quotas, const struct allocation *allocation)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, allocation->uid);

    if (waiter) {
        elastic_uncount(quotas, waiter);
        g_hash_table_add(quotas->fresh, waiter);
    }
}

static void count_node(void *data, uint32_t place, const struct node *node)
{
    struct elastic_quotas *quotas = data;
    struct tally *tally = reach(quotas, place);
    g_autoptr(GPtrArray) before = g_steal_pointer(&tally->holders);
    struct measured measured = {NULL};

    tally->holders = before;
    add_parts(quotas, tally, -1);
    tally->holders = g_ptr_array_new();
    g_array_set_size(tally->amounts, 0);
    for (guint i = 0; node && i < node->allocations->len; i++) {
        node_tallies_fetch(node, i);
        meet(quotas, node->allocations->pdata[i]);
        count_pod(quotas, node->allocations->pdata[i], &measured, tally);
    }
    add_parts(quotas, tally, 1);
    release(quotas, before);
}

void elastic_count_used(struct elastic_quotas *quotas, struct ledger *ledger)
{
    node_tallies_catch_up(&quotas->counted, ledger, count_node, quotas);
}

void elastic_settle_holders(struct elastic_quotas *quotas, bool same_keys)
{
    GHashTableIter iter;
    gpointer key;

    elastic_note_change(quotas);
    if (!same_keys) {
        node_tallies_forget(&quotas->counted);
        g_ptr_array_set_size(quotas->tallies, 0);
        g_hash_table_remove_all(quotas->holders);
        return;
    }
    g_hash_table_iter_init(&iter, quotas->holders);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        struct holder *holder = key;
        holder->account = accounts_find(quotas, holder->ns, holder->choice);
        for (guint i = 0; i < quotas->keys->len; i++)
            add_to_account(quotas, holder->account, i, holder->sums[i]);
    }
}

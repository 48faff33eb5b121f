/* SPDX-License-Identifier: Apache-2.0 */
/* What pods hold, added up by whose they are, as nodes change. */
#include "quota/elastic/elastic_state.h"

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

static void sum_free(gpointer data)
{
    struct holder_sum *sum = data;

    g_free(sum->key);
    g_free(sum);
}

void holder_free(gpointer data)
{
    struct holder *holder = data;

    g_ptr_array_unref(holder->sums);
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
    holder->sums = g_ptr_array_new_with_free_func(sum_free);
    g_hash_table_add(quotas->holders, holder);
    return holder;
}

static struct holder_sum *find_sum(struct holder *holder, const char *key)
{
    for (guint i = 0; i < holder->sums->len; i++) {
        struct holder_sum *sum = holder->sums->pdata[i];
        if (g_str_equal(sum->key, key))
            return sum;
    }
    struct holder_sum *sum = g_new0(struct holder_sum, 1);
    *sum = (struct holder_sum){.holder = holder, .key = g_strdup(key)};
    g_ptr_array_add(holder->sums, sum);
    return sum;
}

/* --- sums ------------------------------------------------------------------------------------- */

static void add_to_account(const struct elastic_quotas *quotas, const struct holder_sum *sum,
                           amount_sum amount)
{
    guint key = 0;

    if (!sum->holder->account || amount == 0)
        return;
    while (key < quotas->keys->len && !g_str_equal(quotas->keys->pdata[key], sum->key))
        key++;
    for (struct elastic_account *at = sum->holder->account; at && key < quotas->keys->len;
         at = at->parent) {
        at->used_sum[key] += amount;
        at->used[key] = amount_sum_told(at->used_sum[key]);
    }
}

static void add_parts(struct elastic_quotas *quotas, const struct tally *tally, int sign)
{
    for (guint i = 0; i < tally->parts->len; i++) {
        const struct part *part = &g_array_index(tally->parts, struct part, i);
        const amount_sum amount = (amount_sum)part->amount * sign;
        part->of->sum += amount;
        if (tally->verified == quotas->verifying)
            part->of->check += amount;
        add_to_account(quotas, part->of, amount);
    }
    if (tally->parts->len > 0)
        elastic_note_change(quotas);
}

static void add_part(struct holder *holder, const char *key, int64_t amount, GArray *parts)
{
    for (guint i = 0; i < parts->len; i++) {
        struct part *part = &g_array_index(parts, struct part, i);
        if (part->of->holder == holder && g_str_equal(part->of->key, key)) {
            part->amount = amount_add(part->amount, amount);
            return;
        }
    }
    const struct part part = {find_sum(holder, key), amount};
    part.of->n_parts++;
    g_array_append_val(parts, part);
}

void elastic_release_parts(struct elastic_quotas *quotas, const GArray *parts)
{
    for (guint i = 0; i < parts->len; i++) {
        struct holder_sum *sum = g_array_index(parts, struct part, i).of;
        struct holder *holder = sum->holder;
        if (--sum->n_parts > 0)
            continue;
        g_ptr_array_remove_fast(holder->sums, sum);
        if (holder->sums->len == 0)
            g_hash_table_remove(quotas->holders, holder);
    }
}

/* --- pods ------------------------------------------------------------------------------------- */

#define MEASURED_MAX (8 + ALLOCATION_SHARES_MAX) /* keys: of a dialect, two that add up, devices */

/* Pods in a row that hold the same, for the same holder. */
struct measured {
    const struct allocation *pod; /* one of them; NULL: none */
    struct holder *holder;
    guint n_pods, n;
    const char *keys[MEASURED_MAX];
    int64_t amounts[MEASURED_MAX];
};

static void measure(struct measured *measured, const char *key)
{
    for (guint i = 0; i < measured->n; i++) {
        if (!key || g_str_equal(measured->keys[i], key))
            return;
    }
    const int64_t amount = key ? elastic_amount(key, measured->pod) : 0;
    if (amount == 0 && measured->n > 0)
        return; /* the first one stays, so that the pod has a holder */
    measured->keys[measured->n] = key;
    measured->amounts[measured->n++] = amount;
}

/* By each key that a quota may name. */
static void measure_pod(struct measured *measured, const struct allocation *pod)
{
    const struct dialect_words *words = pod->dialect ? &pod->dialect->words : NULL;

    measured->pod = pod;
    measured->n = 0;
    measure(measured, KEY_GPUS);
    measure(measured, KEY_MEMORY);
    if (!words)
        return;
    measure(measured, words->count);
    measure(measured, words->memory);
    measure(measured, words->percent);
    measure(measured, words->core);
    measure(measured, words->whole);
    for (uint32_t i = 0; i < pod->n_shares; i++)
        measure(measured, pod->shares[i].device);
}

static bool holds_for(const struct holder *holder, const char *ns, const char *choice)
{
    return g_str_equal(holder->ns, ns) && g_strcmp0(holder->choice, choice) == 0;
}

static void add_measured(struct measured *measured, GArray *parts)
{
    for (guint i = 0; measured->n_pods > 0 && i < measured->n; i++)
        add_part(measured->holder, measured->keys[i],
                 amount_sum_told((amount_sum)measured->amounts[i] * measured->n_pods), parts);
    measured->n_pods = 0;
}

GArray *elastic_count_parts(struct elastic_quotas *quotas, const struct node *node)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct part));
    struct measured measured = {NULL};

    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *pod = node->allocations->pdata[i];
        node_tallies_fetch(node, i);
        const char *choice = elastic_quotas_choice(quotas, pod->uid);
        const bool same_holder = measured.pod && holds_for(measured.holder, pod->ns, choice);
        const bool alike = measured.pod && share_pods_are_alike(measured.pod, pod);
        if (!same_holder || !alike)
            add_measured(&measured, parts);
        if (!alike)
            measure_pod(&measured, pod);
        if (!same_holder)
            measured.holder = find_holder(quotas, pod->ns, choice);
        measured.n_pods++;
    }
    add_measured(&measured, parts);
    return parts;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static struct tally *reach(struct elastic_quotas *quotas, uint32_t place)
{
    if (quotas->tallies->len <= place)
        g_ptr_array_set_size(quotas->tallies, (gint)place + 1);
    struct tally *tally = quotas->tallies->pdata[place];
    if (!tally) {
        tally = g_new0(struct tally, 1);
        tally->parts = g_array_new(FALSE, FALSE, sizeof(struct part));
        quotas->tallies->pdata[place] = tally;
    }
    return tally;
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

static void meet_all(struct elastic_quotas *quotas, const struct node *node)
{
    for (guint i = 0; node && i < node->allocations->len; i++) {
        node_tallies_fetch(node, i);
        meet(quotas, node->allocations->pdata[i]);
    }
}

static void count_node(void *data, uint32_t place, const struct node *node)
{
    struct elastic_quotas *quotas = data;
    struct tally *tally = reach(quotas, place);
    g_autoptr(GArray) before = tally->parts;

    if (g_hash_table_size(quotas->waiters) > 0)
        meet_all(quotas, node);
    add_parts(quotas, tally, -1);
    tally->parts = elastic_count_parts(quotas, node);
    add_parts(quotas, tally, 1);
    elastic_release_parts(quotas, before);
}

bool elastic_quotas_catch_up(struct elastic_quotas *quotas, struct ledger *ledger, uint64_t *left)
{
    return node_tallies_catch_up(&quotas->counted, ledger, left, count_node, quotas) &&
           elastic_count_waiters(quotas, ledger, left);
}

void elastic_count_all(struct elastic_quotas *quotas, struct ledger *ledger)
{
    uint64_t left = UINT64_MAX;

    elastic_quotas_catch_up(quotas, ledger, &left);
}

void elastic_settle_holders(struct elastic_quotas *quotas)
{
    GHashTableIter iter;
    gpointer value;

    elastic_note_change(quotas);
    g_hash_table_iter_init(&iter, quotas->holders);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        struct holder *holder = value;
        holder->account = accounts_find(quotas, holder->ns, holder->choice);
        for (guint i = 0; i < holder->sums->len; i++) {
            const struct holder_sum *sum = holder->sums->pdata[i];
            add_to_account(quotas, sum, sum->sum);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What pods hold, and what they wait for. */
#include "core/ledger.h"
#include "queue/elastic/elastic_state.h"
#include "queue/holding.h"
#include "queue/share_amounts.h"

void tally_free(gpointer data)
{
    struct tally *tally = data;

    if (!tally)
        return;
    g_array_unref(tally->parts);
    g_free(tally);
}

void waiter_free(gpointer data)
{
    struct waiter *waiter = data;

    g_free(waiter->ns);
    request_free(waiter->request);
    g_free(waiter);
}

/* --- measuring ---------------------------------------------------------------------------------- */

struct measuring {
    const struct dialect *dialect;
    const char *key;
};

static int64_t measure(const struct node *node, const struct share *share, const void *data)
{
    const struct measuring *measuring = data;

    if (g_str_equal(measuring->key, KEY_GPUS))
        return share_gpus(node, share);
    if (g_str_equal(measuring->key, KEY_MEMORY))
        return share_kib(node, share);
    return measuring->dialect ? share_units(node, share, measuring->dialect, measuring->key) : 0;
}

static int64_t amount_of(const char *key, const struct holding_query *of,
                         const struct dialect *dialect)
{
    const struct measuring measuring = {dialect, key};
    struct holding_query query = *of;

    query.measure = measure;
    query.data = &measuring;
    return MIN(holding_peak(&query), SHARE_AMOUNT_MAX);
}

int64_t elastic_amount(const char *key, const struct allocation *allocation)
{
    const struct holding_query of = {allocation->node, allocation->shares, allocation->n_shares};

    return amount_of(key, &of, allocation->dialect);
}

int64_t elastic_gpus(const struct allocation *allocation)
{
    const struct holding_query of = {allocation->node, allocation->shares, allocation->n_shares};

    return share_thousandths(amount_of(KEY_GPUS, &of, NULL));
}

void elastic_measure_request(const struct elastic_quotas *quotas, const struct node *node,
                             const struct request *request, int64_t *ret_amounts)
{
    struct share shares[REQUEST_ASKS_MAX];
    const struct holding_query of = {node, shares, holding_ask(request, shares)};

    for (guint key = 0; key < quotas->keys->len; key++)
        ret_amounts[key] = amount_of(quotas->keys->pdata[key], &of, request->dialect);
}

void elastic_measure_placement(const struct elastic_quotas *quotas, const struct node *node,
                               const struct placement *placement, int64_t *ret_amounts)
{
    const struct holding_query of = {node, placement->shares, placement->n_shares};

    for (guint key = 0; key < quotas->keys->len; key++)
        ret_amounts[key] = amount_of(quotas->keys->pdata[key], &of, placement->request->dialect);
}

/* --- who waits ---------------------------------------------------------------------------------- */

static void add_waiting(struct elastic_quotas *quotas, const struct waiter *waiter, int sign)
{
    if (waiter->account)
        elastic_note_change(quotas);
    for (struct elastic_account *at = waiter->account; at; at = at->parent) {
        for (guint key = 0; key < quotas->keys->len; key++) {
            at->waiting_sum[key] += sign * waiter->amounts[key];
            at->waiting[key] = amount_sum_told(at->waiting_sum[key]);
            if (waiter->tie && at == waiter->account)
                at->tied_sum[key] += sign * waiter->amounts[key];
        }
    }
}

void elastic_uncount(struct elastic_quotas *quotas, struct waiter *waiter)
{
    g_hash_table_remove(quotas->fresh, waiter);
    add_waiting(quotas, waiter, -1);
    waiter->account = NULL;
}

/* A node on which pods of the dialect may be, for units and sizes that only nodes know. */
static const struct node *find_example(struct elastic_quotas *quotas, struct ledger *ledger,
                                       const struct dialect *dialect)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        quotas->n_examined++;
        if (node->present && (node->dialect == dialect || node_offers(node, dialect)))
            return node;
    }
    return NULL;
}

/* The same for all that are counted at a time: `examples` has those that were looked for. */
static const struct node *example_of(struct elastic_quotas *quotas, struct ledger *ledger,
                                     const struct dialect *dialect, GHashTable *examples)
{
    gpointer node;

    if (!g_hash_table_lookup_extended(examples, dialect, NULL, &node)) {
        node = (gpointer)find_example(quotas, ledger, dialect);
        g_hash_table_insert(examples, (gpointer)dialect, node);
    }
    return node;
}

/* Whether a quota lets it come when nobody else has anything of it. */
static bool may_ever_have(const struct elastic_quotas *quotas, const struct waiter *waiter)
{
    if (elastic_quotas_closes(quotas, waiter->ns))
        return false;
    for (const struct elastic_account *at = waiter->account; at; at = at->parent) {
        if (unkept_concerns(at, waiter->request))
            return false;
        for (guint key = 0; key < quotas->keys->len; key++) {
            const bool sure = quotas->min[key] && (!at->parent || waiter->tie);
            const int64_t most = sure ? MIN(at->min[key], at->max[key]) : at->max[key];
            if (waiter->amounts[key] > most)
                return false;
        }
    }
    return true;
}

void elastic_count_waiters(struct elastic_quotas *quotas, struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer value;

    if (g_hash_table_size(quotas->fresh) == 0) /* the usual case */
        return;
    g_autoptr(GHashTable) examples = g_hash_table_new(NULL, NULL);
    g_hash_table_iter_init(&iter, quotas->fresh);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        struct waiter *waiter = value;
        if (ledger_get(ledger, waiter->uid))
            continue;
        g_hash_table_iter_remove(&iter);
        const struct node *node = example_of(quotas, ledger, waiter->request->dialect, examples);
        if (!node || waiter->hopeless)
            continue;
        waiter->account =
            accounts_find(quotas, waiter->ns, elastic_quotas_choice(quotas, waiter->uid));
        if (!waiter->account)
            continue;
        elastic_measure_request(quotas, node, waiter->request, waiter->amounts);
        if (may_ever_have(quotas, waiter))
            add_waiting(quotas, waiter, 1);
        else
            waiter->account = NULL;
    }
}

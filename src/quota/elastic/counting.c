/* SPDX-License-Identifier: Apache-2.0 */
/* What pods hold, and what they ask for, by key. */
#include "quota/elastic/elastic_state.h"
#include "quota/holding.h"
#include "quota/share_amounts.h"

void tally_free(gpointer data)
{
    struct tally *tally = data;

    if (!tally)
        return;
    g_array_unref(tally->parts);
    g_free(tally);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/holding.h"

#include "core/allocation.h"

static int64_t measure(const struct holding_query *query, uint32_t i)
{
    return query->measure(query->node, &query->shares[i], query->data);
}

/* With an init container, at its time. */
static int64_t peak_of_init(const struct holding_query *query, uint32_t i)
{
    const struct share *init = &query->shares[i];
    int64_t sum = 0;

    for (uint32_t j = 0; j < query->n_shares; j++) {
        const struct share *other = &query->shares[j];
        if (other->init ? other->container == init->container
                        : other->sidecar && other->container < init->container)
            sum += measure(query, j);
    }
    return sum;
}

int64_t holding_peak(const struct holding_query *query)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < query->n_shares; i++)
        most += query->shares[i].init ? 0 : measure(query, i);
    for (uint32_t i = 0; i < query->n_shares; i++) {
        if (query->shares[i].init)
            most = MAX(most, peak_of_init(query, i));
    }
    return most;
}

uint32_t holding_ask(const struct request *request, struct share *shares)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        const int32_t count = ask->device ? 1 : ask->count;
        for (int32_t j = 0; j < count && n < REQUEST_ASKS_MAX; j++)
            shares[n++] = share_of_ask(ask);
    }
    return n;
}

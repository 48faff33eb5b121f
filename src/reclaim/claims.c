/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/claims.h"

#include "explain/reclaim/reclaim_plan.h"
#include "queue/pod_rules.h"

#include <string.h>

struct reading {
    struct store *store;
    GArray *rows;
    int64_t now_ns;
    struct reclaim_promises *promises;
};

static void clear_row(gpointer data)
{
    struct claim_row *row = data;

    g_free(row->node);
    claim_free(row->claim);
    g_free(row->ns);
    g_free(row->name);
}

static enum claim_state judge(const struct reading *reading, const char *node,
                              const struct room_claim *claim)
{
    const struct allocation *held = ledger_get(store_ledger(reading->store), claim->uid);
    const struct node *known = ledger_node(store_ledger(reading->store), node);
    const char *own = NULL;

    if (claim_is_over(claim))
        return CLAIM_GONE;
    if (held && (held->state == ALLOCATION_CONFIRMED || held->state == ALLOCATION_BOUND))
        return CLAIM_BOUND;
    /* One that is being deleted stays as long as a finalizer lets it, and never comes. */
    if (!held && store_waiting_since(reading->store, claim->uid) == 0)
        return CLAIM_GONE;
    if (!claim_counts(claim, reading->now_ns))
        return CLAIM_LAPSED;
    if (!known || !known->present)
        return CLAIM_NODELESS;
    nominations_claim(store_nominations(reading->store), claim->uid, &own);
    return own && strcmp(own, node) != 0 ? CLAIM_STALE : CLAIM_WAITS;
}

static void add(const char *node, const struct room_claim *claim, void *data)
{
    const struct reading *reading = data;
    const struct pod_rules *rules = store_rules(reading->store, claim->uid);
    struct claim_row row = {
        .node = g_strdup(node),
        .claim = claim_dup(claim),
        .state = judge(reading, node, claim),
        .ns = rules ? g_strdup(rules->ns) : NULL,
        .name = rules ? g_strdup(rules->name) : NULL,
    };

    for (char **uid = claim->ends; *uid; uid++)
        row.n_left += ledger_get(store_ledger(reading->store), *uid) != NULL;
    g_array_append_val(reading->rows, row);
}

/* The oldest first. */
static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const struct room_claim *left = ((const struct claim_row *)a)->claim;
    const struct room_claim *right = ((const struct claim_row *)b)->claim;

    if (left->since_s != right->since_s)
        return left->since_s < right->since_s ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

/* What a namespace holds already it was sure of. */
static void weigh(const struct reading *reading, struct claim_row *row)
{
    if (row->state == CLAIM_WAITS && !ledger_get(store_ledger(reading->store), row->claim->uid) &&
        !reclaim_is_sure(reading->store, reading->promises, row->node, row->claim->uid))
        row->state = CLAIM_UNSURE;
}

GArray *claims_read(struct store *store)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct claim_row));
    g_autoptr(reclaim_promises) promises = reclaim_promises_new();
    struct moment moment;

    g_array_set_clear_func(rows, clear_row);
    store_decide(store, &moment);
    const struct reading reading = {store, rows, moment.now_ns, promises};
    nominations_each_claim(store_nominations(store), add, (void *)&reading);
    g_array_sort(rows, compare_rows);
    for (guint i = 0; i < rows->len; i++)
        weigh(&reading, &g_array_index(rows, struct claim_row, i));
    store_unlock(store);
    return rows;
}

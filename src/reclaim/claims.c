/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/claims.h"

#include "explain/reclaim/reclaim_plan.h"
#include "queue/pod_rules.h"

#include <string.h>

struct reading {
    struct store *store;
    GArray *rows;
    int64_t now_ns;
};

static void clear_row(gpointer data)
{
    struct claim_row *row = data;

    g_free(row->node);
    claim_free(row->claim);
    g_free(row->ns);
    g_free(row->name);
    g_free(row->group);
}

char *claims_group_of(struct store *store, const char *uid)
{
    struct gang_row row;

    return gangs_tell(store_gangs(store), uid, &row) ? g_strdup_printf("%s/%s", row.ns, row.name)
                                                     : NULL;
}

static enum claim_state judge(const struct reading *reading, const char *node,
                              const struct room_claim *claim)
{
    const struct allocation *held = ledger_get(store_ledger(reading->store), claim->uid);
    const char *own = NULL;

    if (claim_is_over(claim))
        return CLAIM_GONE;
    if (held && (held->state == ALLOCATION_CONFIRMED || held->state == ALLOCATION_BOUND))
        return CLAIM_BOUND;
    if (!held && !store_pending(reading->store, claim->uid))
        return CLAIM_GONE;
    if (!claim_counts(claim, reading->now_ns))
        return CLAIM_LAPSED;
    nominations_claim(store_nominations(reading->store), claim->uid, &own);
    if (own && strcmp(own, node) != 0)
        return CLAIM_STALE;
    return held || reclaim_is_sure(reading->store, node, claim->uid) ? CLAIM_WAITS : CLAIM_UNSURE;
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
        .group = claims_group_of(reading->store, claim->uid),
    };

    for (char **uid = claim->ends; *uid; uid++)
        row.n_left += ledger_get(store_ledger(reading->store), *uid) != NULL;
    g_array_append_val(reading->rows, row);
}

GArray *claims_read(struct store *store)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct claim_row));
    struct moment moment;

    g_array_set_clear_func(rows, clear_row);
    store_decide(store, &moment);
    nominations_each_claim(store_nominations(store), add,
                           &(struct reading){store, rows, moment.now_ns});
    store_unlock(store);
    return rows;
}

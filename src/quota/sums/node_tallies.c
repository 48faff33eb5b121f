/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/sums/node_tallies.h"

void node_tallies_init(struct node_tallies *tallies)
{
    *tallies = (struct node_tallies){
        .versions = g_array_new(FALSE, TRUE, sizeof(uint64_t)),
        .stale = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
    };
}

void node_tallies_clear(struct node_tallies *tallies)
{
    g_clear_pointer(&tallies->versions, g_array_unref);
    g_clear_pointer(&tallies->stale, g_hash_table_unref);
}

void node_tallies_renew(struct node_tallies *tallies, const char *node)
{
    g_hash_table_add(tallies->stale, g_strdup(node));
    tallies->complete = 0;
}

static uint64_t *version_at(const struct node_tallies *tallies, uint32_t place)
{
    return &g_array_index(tallies->versions, uint64_t, place);
}

static void find_stale(const struct node_tallies *tallies, const struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, tallies->stale);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        const struct node *node = ledger_node(ledger, name);
        if (node)
            *version_at(tallies, node_own(node)->place) = 0;
    }
    g_hash_table_remove_all(tallies->stale);
}

bool node_tallies_catch_up(struct node_tallies *tallies, const struct ledger *ledger,
                           uint64_t *left, node_tally count, void *data)
{
    const uint32_t n = ledger_places(ledger);
    const uint64_t changes = ledger_changes(ledger);

    if (tallies->complete == changes && changes != 0)
        return true;
    g_assert(!tallies->ledger || tallies->ledger == ledger);
    tallies->ledger = ledger;
    if (tallies->versions->len < n)
        g_array_set_size(tallies->versions, n);
    if (g_hash_table_size(tallies->stale) > 0)
        find_stale(tallies, ledger);
    for (uint32_t place = 0; place < n; place++) {
        const uint64_t version = ledger_version_at(ledger, place);
        tallies->n_looks++;
        if (*version_at(tallies, place) == version)
            continue;
        if (*left == 0)
            return false;
        const struct node *node = ledger_node_at(ledger, place);
        const uint64_t n_pods = node ? node->allocations->len : 0;
        *version_at(tallies, place) = version;
        tallies->n_pods += n_pods;
        *left -= MIN(*left, MAX(n_pods, 1));
        count(data, place, node);
    }
    tallies->complete = changes;
    return true;
}

bool node_tallies_are_current(const struct node_tallies *tallies, const struct ledger *ledger,
                              uint32_t place)
{
    return tallies->ledger == ledger && place < tallies->versions->len &&
           *version_at(tallies, place) == ledger_version_at(ledger, place);
}

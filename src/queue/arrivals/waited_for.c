/* SPDX-License-Identifier: Apache-2.0 */
/* Which older pods are waited for: who asks, or has an excuse, and how many of each namespace. */
#include "core/ledger.h"
#include "core/node_traits.h"
#include "queue/arrivals/arrival.h"

/* How long it is taken for granted that a pod could ask, or could not; and how many are looked at for
 * one answer. */
#define ABLE_MS 10000
#define ABLE_LOOKS 4

/* --- pods that ask ---------------------------------------------------------------------------- */

/* Whether kube-scheduler's sums of extended resources leave the pod room. What the node does not offer is
 * left to an extender, so kube-scheduler is configured. */
static bool sums_suffice(const struct node *node, const struct pod_facts *facts)
{
    for (uint32_t i = 0; facts && i < facts->n_amounts; i++) {
        const char *resource = facts->amounts[i].resource;
        const int64_t all = node_traits_amount(node->traits, resource);
        int64_t left = all - facts->amounts[i].thousandths;
        for (guint j = 0; all > 0 && left >= 0 && j < node->allocations->len; j++) {
            const struct allocation *one = node->allocations->pdata[j];
            left -= pod_facts_amount(one->facts, resource);
        }
        if (all > 0 && left < 0)
            return false;
    }
    return true;
}

static bool could_ask(const struct arrival *arrival, struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present && node->dialect && !node->cordoned && sums_suffice(node, arrival->facts))
            return true;
    }
    return false;
}

/* Of a pod that does not ask: whether that is because it cannot. */
static void look_for_excuse(const struct arrivals *arrivals, const struct arrivals_query *query,
                            struct arrival *arrival, int *looks)
{
    const bool excused = arrival->asking_ms == INT64_MAX;

    if (arrival->asking_ms > query->now_ms && !excused)
        return;
    if (!arrival->asked &&
        !(arrival->plain && g_hash_table_contains(arrivals->schedulers, arrival->scheduler))) {
        if (arrival->asking_ms != 0)
            arrival_change(arrival);
        arrival->asking_ms = 0;
        return;
    }
    if ((arrival->looked_ms != 0 && query->now_ms - arrival->looked_ms < ABLE_MS) || *looks == 0)
        return;
    --*looks;
    arrival_change(arrival);
    arrival->looked_ms = query->now_ms;
    if (!could_ask(arrival, query->ledger))
        arrival->asking_ms = INT64_MAX;
    else if (excused)
        arrival->asking_ms = query->now_ms + ARRIVALS_ASKING_MS;
}

void arrivals_look_for_excuses(struct arrivals *arrivals, const struct arrivals_query *query)
{
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    int looks = ABLE_LOOKS;

    for (; looks > 0 && !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at))
        look_for_excuse(arrivals, query, g_sequence_get(at), &looks);
}

/* It asks, or cannot, and its time has not passed. */
bool arrival_is_waited_for(const struct arrival *arrival, const struct arrivals_query *query)
{
    return !arrival->grouped && (query->all_ask || arrival->asking_ms > query->now_ms) &&
           (arrival->until_ms == 0 || arrival->until_ms > query->now_ms) &&
           !ledger_get(query->ledger, arrival->uid);
}

/* --- shares of namespaces --------------------------------------------------------------------- */

/* How many of each namespace wait. */
GHashTable *arrivals_count_waiting(const struct arrivals *arrivals,
                                   const struct arrivals_query *query, guint *ret_all)
{
    GHashTable *counts = g_hash_table_new(g_str_hash, g_str_equal);
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);

    *ret_all = 0;
    for (; !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at)) {
        const struct arrival *arrival = g_sequence_get(at);
        if (!arrival_is_waited_for(arrival, query) || arrival->hopeless_ms != 0)
            continue;
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, arrival->ns));
        g_hash_table_insert(counts, arrival->ns, GUINT_TO_POINTER(n + 1));
        ++*ret_all;
    }
    return counts;
}

bool arrival_take_share(struct arrival_shares *shares, const struct arrival *arrival)
{
    const int64_t own = GPOINTER_TO_UINT(g_hash_table_lookup(shares->waiting, arrival->ns));
    const int64_t given = GPOINTER_TO_UINT(g_hash_table_lookup(shares->given, arrival->ns));

    if (given >= MAX((shares->n + 1) / 2, shares->n - ((int64_t)shares->all - own)))
        return false;
    g_hash_table_insert(shares->given, arrival->ns, GUINT_TO_POINTER((guint)given + 1));
    return true;
}

/* Who has to be left room: who came before the pod, is not less important, and is waited for. For one
 * that is nominated room is kept already. */
GPtrArray *arrivals_find_older(struct arrivals *arrivals, const struct arrivals_query *query,
                               GHashTable *waiting, guint all)
{
    const GSequenceIter *own = g_hash_table_lookup(arrivals->places, query->nominees->uid);
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    GPtrArray *older = g_ptr_array_new();
    struct arrival_shares shares = {.waiting = waiting,
                                    .given = g_hash_table_new(g_str_hash, g_str_equal),
                                    .all = all,
                                    .n = ARRIVALS_OLDER_MAX};

    for (; older->len < ARRIVALS_OLDER_MAX && at != own && !g_sequence_iter_is_end(at);
         at = g_sequence_iter_next(at)) {
        struct arrival *arrival = g_sequence_get(at);
        if (arrival->priority < query->nominees->priority ||
            !arrival_is_waited_for(arrival, query) ||
            nominations_have(query->nominees->nominations, arrival->uid) ||
            !arrival_take_share(&shares, arrival))
            continue;
        arrival->at = older->len;
        arrival->like = arrival;
        for (guint i = 0; i < older->len && arrival->like == arrival; i++) {
            const struct arrival *other = older->pdata[i];
            if (other->like == other && request_equal(other->request, arrival->request))
                arrival->like = other;
        }
        g_ptr_array_add(older, arrival);
    }
    g_hash_table_unref(shares.given);
    return older;
}

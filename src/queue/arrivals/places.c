/* SPDX-License-Identifier: Apache-2.0 */
/* The oldest pods that fit nowhere get places (rule 2 of docs/design/arrival.md). */
#include "core/ledger.h"
#include "queue/arrivals/arrival.h"

/* How long it is taken for granted that no node suits a pod. */
#define HOPELESS_MS 10000

/* Whether a pod has to fit beside the place of another, which is not open. */
static bool counts(const struct arrival *arrival, const struct arrivals_query *query)
{
    return !reservation_is_open(arrival->place) && arrival->priority >= query->nominees->priority &&
           arrival_is_waited_for(arrival, query);
}

/* How many of those with a place came before the pod that asks. */
static guint count_older(const struct arrivals *arrivals, const struct arrivals_query *query)
{
    GSequenceIter *own = g_hash_table_lookup(arrivals->places, query->nominees->uid);
    guint n = 0;

    while (n < arrivals->placed->len &&
           (!own || arrival_compare(arrivals->placed->pdata[n], g_sequence_get(own), NULL) < 0))
        n++;
    return n;
}

static size_t older_places(const struct arrivals *arrivals, const struct arrivals_query *query,
                           const struct reservation **ret_places)
{
    const guint n_older = count_older(arrivals, query);
    size_t n = 0;

    for (guint i = 0; i < n_older; i++) {
        const struct arrival *arrival = arrivals->placed->pdata[i];
        if (counts(arrival, query))
            ret_places[n++] = arrival->place;
    }
    return n;
}

/* Sees to the place of one pod, as that pod finds the nodes. */
static void find_place(struct arrivals *arrivals, const struct arrivals_query *query,
                       struct arrival *arrival)
{
    const struct reservation *before[ARRIVALS_PLACES_MAX];
    struct nominees nominees = arrival_look_as(query, arrival);
    struct arrivals_query own = *query;
    bool blocked = false;

    arrival_change(arrival);
    own.nominees = &nominees;
    const struct pod_view pod = {.uid = arrival->uid, .ns = arrival->ns};
    g_autoptr(quota_room) room = quotas_room(query->quotas, query->ledger, &pod, arrival->request);
    const struct reservation_query places = {
        .ledger = query->ledger,
        .nominees = &nominees,
        .room = room,
        .before = before,
        .n_before = older_places(arrivals, &own, before),
    };
    if (arrival->place && !reservation_holds(arrival->place, &places))
        arrival_drop_place(arrival);
    if (!arrival->place) {
        arrival->place = reservation_choose(&places, &blocked);
        arrival->hopeless_ms = arrival->place || blocked ? 0 : query->now_ms;
        if (arrival->place) {
            arrival_enlist_place(arrival);
            arrivals->n_changes++;
        }
    }
    arrival->seen =
        arrival_stamp_of(arrivals, query->ledger, query->nominees->nominations, arrival->place);
    nominees_clear(&nominees);
}

/* Whether nobody but pods of its own namespace has to end before it can come. */
static bool has_own_way(const struct arrival *arrival, const struct ledger *ledger)
{
    const GPtrArray *ending = arrival->place->ending;

    for (guint i = 0; i < ending->len; i++) {
        const struct allocation *one = ledger_get(ledger, ending->pdata[i]);
        if (one && g_strcmp0(one->ns, arrival->ns) != 0)
            return false;
    }
    return true;
}

/* Whether it is known what looking would find. */
static bool is_settled(const struct arrivals *arrivals, const struct arrivals_query *query,
                       const struct arrival *arrival)
{
    const struct arrival_stamp now =
        arrival_stamp_of(arrivals, query->ledger, query->nominees->nominations, arrival->place);

    return arrival_stamps_agree(&arrival->seen, &now) ||
           (arrival->hopeless_ms != 0 && query->now_ms - arrival->hopeless_ms < HOPELESS_MS);
}

/* The oldest pods get places, and no others have any. */
static void settle(struct arrivals *arrivals, const struct arrivals_query *query,
                   GHashTable *waiting, guint all)
{
    const int64_t n_places = MIN(query->n_places, ARRIVALS_PLACES_MAX);
    struct arrival_shares shares = {.waiting = waiting,
                                    .given = g_hash_table_new(g_str_hash, g_str_equal),
                                    .all = all,
                                    .n = n_places};
    int64_t n = 0, looked = 0;

    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    for (; n < n_places && looked < n_places * ARRIVALS_LOOKS && !g_sequence_iter_is_end(at);
         at = g_sequence_iter_next(at)) {
        struct arrival *arrival = g_sequence_get(at);
        if (!arrival_is_waited_for(arrival, query) ||
            nominations_have(query->nominees->nominations, arrival->uid)) {
            arrival_drop_place(arrival);
            continue;
        }
        if (arrival->hopeless_ms == 0 && !arrival_take_share(&shares, arrival)) {
            arrival_drop_place(arrival);
            continue;
        }
        const bool settled = is_settled(arrivals, query, arrival);
        if (!settled)
            find_place(arrivals, query, arrival);
        if (arrival->place && !reservation_is_open(arrival->place) &&
            has_own_way(arrival, query->ledger))
            arrival_begin_hold(arrival, query);
        n += arrival->place != NULL;
        /* Those for whom there is no node at all may be many, and keep nobody else from a place. */
        looked += !settled || arrival->hopeless_ms == 0;
    }
    for (guint i = arrivals->placed->len; i > (guint)n; i--)
        arrival_drop_place(arrivals->placed->pdata[i - 1]);
    g_hash_table_unref(shares.given);
}

void arrivals_settle(struct arrivals *arrivals, struct arrivals_query *query)
{
    if (query->hold_ms == 0) /* the usual case */
        return;
    guint all;
    if (!query->all_ask)
        arrivals_look_for_excuses(arrivals, query);
    g_autoptr(GHashTable) waiting = arrivals_count_waiting(arrivals, query, &all);
    if (query->n_places > 0)
        settle(arrivals, query, waiting, all);
    query->older = arrivals_find_older(arrivals, query, waiting, all);
}

struct what_if *arrivals_cover(const struct arrivals *arrivals, const struct node *node,
                               const struct arrivals_query *query)
{
    const struct reservation *places[ARRIVALS_PLACES_MAX];

    return arrivals->placed->len == 0
               ? NULL
               : reservations_cover(node, places, older_places(arrivals, query, places));
}

struct arrivals_older arrivals_leave(struct arrivals *arrivals, const struct arrivals_node *node,
                                     const struct arrivals_query *query)
{
    const guint n_older = count_older(arrivals, query);
    struct arrival_views views = arrival_views_of(node, query);
    struct arrivals_older older = {NULL};

    for (guint i = 0; i < n_older; i++) {
        struct arrival *arrival = arrivals->placed->pdata[i];
        if (!counts(arrival, query) || !g_str_equal(arrival->place->node, node->as_it_is->name))
            continue;
        if (arrival_is_waited_for(arrival, query) &&
            !arrival_is_shut_out(arrival, views.node, query) &&
            arrival_may_come(arrival, arrival_view_of(&views, arrival), query))
            arrival_begin_hold(arrival, query);
        if (!older.title)
            older = (struct arrivals_older){arrival->title, arrival->place};
    }
    arrival_views_clear(&views);
    return older;
}

bool arrivals_are_idle(const struct arrivals *arrivals, const struct arrivals_query *query)
{
    return query->older->len == 0 && arrivals->placed->len == 0;
}

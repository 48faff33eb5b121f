/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/reservation.h"

#include "core/card.h"
#include "core/node.h"

#include <stdlib.h>
#include <string.h>

/* Nodes on which a place is looked for pod by pod, the most promising first. */
#define TRIED_MAX 16

struct reservation *reservation_new(const char *node, struct allocation *take_held)
{
    struct reservation *place = g_atomic_rc_box_new(struct reservation);

    place->node = g_strdup(node);
    place->held = take_held;
    place->ending = g_ptr_array_new_with_free_func(g_free);
    return place;
}

struct reservation *reservation_ref(const struct reservation *place)
{
    return g_atomic_rc_box_acquire((struct reservation *)place);
}

static void clear(gpointer data)
{
    struct reservation *place = data;

    g_free(place->node);
    allocation_free(place->held);
    g_ptr_array_unref(place->ending);
}

void reservation_unref(struct reservation *place)
{
    if (place)
        g_atomic_rc_box_release_full(place, clear);
}

bool reservation_is_open(const struct reservation *place)
{
    return place->ending->len == 0;
}

/* --- nodes as they will be ------------------------------------------------------------------ */

static bool must_end(const struct reservation *place, const struct allocation *allocation)
{
    for (guint i = 0; i < place->ending->len; i++) {
        if (g_str_equal(place->ending->pdata[i], allocation->uid))
            return true;
    }
    return false;
}

/* As if those had ended and the pod had come. False: there is no room for it even so, and the what-if node
 * is as it was. */
static bool come(const struct reservation *place, struct what_if *what_if)
{
    GPtrArray *on_node = what_if->node->allocations;
    g_autoptr(GPtrArray) ended = g_ptr_array_new();

    for (guint i = on_node->len; i-- > 0;) {
        if (must_end(place, on_node->pdata[i]))
            g_ptr_array_add(ended, on_node->pdata[i]);
    }
    for (guint i = 0; i < ended->len; i++)
        what_if_without(what_if, ended->pdata[i]);
    if (node_check_fit(what_if->node, place->held) == REASON_NONE) {
        what_if_add(what_if, allocation_dup(place->held));
        return true;
    }
    for (guint i = 0; i < ended->len; i++)
        what_if_with(what_if, ended->pdata[i]);
    return false;
}

/* The node once the older pods have taken their places there. */
static struct what_if *later(const struct node *seen, const struct reservation *const *places, size_t n)
{
    struct what_if *what_if = what_if_new(seen);

    for (size_t i = 0; i < n; i++) {
        if (g_str_equal(places[i]->node, seen->name))
            come(places[i], what_if);
    }
    return what_if;
}

struct what_if *reservations_cover(const struct node *seen, const struct reservation *const *places, size_t n)
{
    struct what_if *cover = NULL;
    g_autoptr(what_if) stage = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!g_str_equal(places[i]->node, seen->name))
            continue;
        if (!cover) {
            cover = what_if_new(seen);
            stage = what_if_new(seen);
        }
        if (come(places[i], stage))
            what_if_cover(cover, stage->node, allocation_dup(places[i]->held));
    }
    return cover;
}

/* Whom the node side has not matched yet it will have by then. */
static bool admits_later(const struct admission_query *admission, struct node *node,
                         struct placement *ret_placement, enum reason *ret_reason)
{
    node->n_waiting = 0;
    g_clear_pointer(&node->departed, g_array_unref);
    g_clear_pointer(&node->promised, g_array_unref); /* and revoked */
    return dialect_admit(node, admission, ret_placement, ret_reason) == ADMISSION_YES;
}

static bool admits(const struct reservation_query *query, struct node *node,
                   struct placement *ret_placement)
{
    enum reason reason;

    return admits_later(&query->nominees->admission, node, ret_placement, &reason);
}

const struct request *reservation_read_for(const struct node *node, const struct request *request)
{
    while (request && !node_offers(node, request->dialect))
        request = request->alternative;
    return request;
}

bool reservation_is_hopeless(const struct node *node, const struct request *request)
{
    const bool oversubscribes = request->terms && request->terms->oversubscribes;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        const struct pool *pool = ask->device ? node_pool(node, ask->device) : NULL;
        if (ask->device ? !pool || ask->count > pool->capacity - pool->used
                        : ask->memory.kind != AMOUNT_THOUSANDTHS && !oversubscribes &&
                              amount_bytes(ask->memory, node->memory_unit) >
                                  node->memory_free_max)
            return true;
    }
    return false;
}

/* --- how much must become free --------------------------------------------------------------- */

static int64_t per_mille(int64_t part, int64_t whole)
{
    return part <= 0 ? 0 : whole <= 0 ? CORE_WHOLE : (part * CORE_WHOLE + whole - 1) / whole;
}

/* What an allocation would give back by its end, in thousandths of a card. */
static int64_t weigh(const struct node *node, const struct allocation *allocation)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        const struct card *card = node_share_card(node, share);
        if (share->device) {
            const struct pool *pool = node_pool(node, share->device);
            sum += (int64_t)share->devices * CORE_WHOLE / MAX(pool ? pool->replicas : 1, 1);
        } else if (share->exclusive || !card) {
            sum += CORE_WHOLE;
        } else {
            sum += MAX(share->core,
                       per_mille(card_bytes(node, card, share->memory), card->memory));
        }
    }
    return sum;
}

/* What a card lacks for one share of the ask; INT64_MAX: it is too small. */
static int64_t lack(const struct node *node, const struct card *card, const struct card_ask *ask)
{
    const int64_t bytes = card_bytes(node, card, ask->memory);

    if (bytes > card->memory || card_core(card, ask->core) > card->core)
        return INT64_MAX;
    if (card_excludes(card, ask->exclusive, ask->core))
        return card->holders + node->unplaced_holders > 0
                   ? MAX(per_mille(card->memory_used, card->memory), 1)
                   : 0;
    return MAX(per_mille(bytes - card_memory_free(node, card), card->memory),
               card_core_told(card, card_core(card, ask->core) - card_core_free(node, card)));
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

/* Never more than what must become free on the node for these asks, one by one; INT64_MAX: it is too
 * small for them. */
static int64_t foresee(const struct node *node, const struct request *request)
{
    int64_t lacks[NODE_CARDS_MAX], sum = 0;

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        if (ask->device) {
            const struct pool *pool = node_pool(node, ask->device);
            if (!pool || ask->count > pool->capacity)
                return INT64_MAX;
            sum = MAX(sum, MAX(ask->count - (pool->capacity - pool->used), 0) * CORE_WHOLE /
                               MAX(pool->replicas, 1));
            continue;
        }
        int64_t own = 0;
        for (int32_t j = 0; j < node->n_cards; j++)
            lacks[j] = lack(node, &node->cards[j], ask);
        qsort(lacks, (size_t)node->n_cards, sizeof *lacks, compare_numbers);
        if (node->n_cards == 0 || lacks[0] == INT64_MAX)
            return INT64_MAX;
        /* Of a card that is cut several parts may be had. */
        for (int32_t j = 0; j < MIN(ask->count, node->n_cards) && lacks[j] < INT64_MAX; j++)
            own += MAX(lacks[j], 0);
        sum = MAX(sum, own);
    }
    return sum;
}

/* It may be over without a change of the node's hardware, or is not known. */
static bool is_passing(enum reason reason)
{
    static const enum reason passing[] = {
        REASON_CARD_UNHEALTHY, REASON_CARD_CLOSED,   REASON_CHANGING,
        REASON_PLUGIN_AWAY,    REASON_PLUGIN_SILENT, REASON_WORK_LIMIT,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(passing); i++) {
        if (reason == passing[i])
            return true;
    }
    return false;
}

bool reservation_could_hold(const struct node *node, const struct admission_query *admission)
{
    const struct request *request = reservation_read_for(node, admission->request);
    enum reason reason;

    if (!request || foresee(node, request) == INT64_MAX)
        return false;
    if (dialect_admits(node, admission) != ADMISSION_NO)
        return true;
    g_autoptr(what_if) empty = what_if_new(node);
    for (guint i = 0; i < empty->n_copied; i++)
        what_if_without(empty, empty->allocations->pdata[i]);
    return admits_later(admission, empty->node, NULL, &reason) || is_passing(reason);
}

/* --- on one node ------------------------------------------------------------------------------ */

struct holder {
    struct allocation *allocation; /* the what-if node's */
    int64_t weight;
};

/* Who is to be spared first: who is not being deleted, the largest. */
static int compare_holders(const void *a, const void *b)
{
    const struct holder *left = a, *right = b;

    if (left->allocation->terminating != right->allocation->terminating)
        return left->allocation->terminating ? 1 : -1;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return strcmp(left->allocation->uid, right->allocation->uid);
}

/* Who was on the node and has ended there so that older pods may come. */
static size_t find_ended(const struct reservation_query *query, const struct what_if *what_if,
                         struct holder *ret_holders)
{
    size_t n = 0;

    if (what_if->allocations->len == what_if->node->allocations->len)
        return 0; /* nobody has, as mostly */
    for (guint i = 0; i < what_if->allocations->len; i++) {
        struct allocation *allocation = what_if->allocations->pdata[i];
        if (ledger_get(query->ledger, allocation->uid) &&
            !g_ptr_array_find(what_if->node->allocations, allocation, NULL))
            ret_holders[n++] = (struct holder){allocation, weigh(what_if->node, allocation)};
    }
    qsort(ret_holders, n, sizeof *ret_holders, compare_holders);
    return n;
}

/* NULL: there is none on this node. `ret_need`: what must become free. */
static struct reservation *look(const struct reservation_query *query, const struct node *node,
                          int64_t *ret_need)
{
    const struct node *seen = nominees_see(query->nominees, node);
    g_autoptr(what_if) what_if = later(seen, query->before, query->n_before);
    g_autofree struct holder *holders = g_new(struct holder, what_if->allocations->len + 1);
    g_autofree struct holder *ended = g_new(struct holder, what_if->allocations->len + 1);
    g_autoptr(GPtrArray) ending = g_ptr_array_new(); /* borrowed */
    struct placement placement;
    const size_t n_ended = find_ended(query, what_if, ended);
    size_t n = 0;

    /* Those who are on the node now; for whom room is kept will not have ended. */
    for (guint i = 0; i < what_if->node->allocations->len; i++) {
        struct allocation *allocation = what_if->node->allocations->pdata[i];
        if (ledger_get(query->ledger, allocation->uid))
            holders[n++] = (struct holder){allocation, weigh(seen, allocation)};
    }
    qsort(holders, n, sizeof *holders, compare_holders);
    for (size_t i = 0; i < n; i++)
        what_if_without(what_if, holders[i].allocation);
    if (!admits(query, what_if->node, NULL))
        return NULL;
    *ret_need = 0;
    for (size_t i = 0; i < n; i++) {
        what_if_with(what_if, holders[i].allocation);
        if (admits(query, what_if->node, NULL))
            continue;
        what_if_without(what_if, holders[i].allocation);
        g_ptr_array_add(ending, (gpointer)holders[i].allocation->uid);
        *ret_need += holders[i].allocation->terminating ? 0 : holders[i].weight;
    }
    /* Who has to end for an older pod may have to for this one, too, which costs nothing more. */
    for (size_t i = 0; i < n_ended; i++) {
        what_if_with(what_if, ended[i].allocation);
        if (admits(query, what_if->node, NULL))
            continue;
        what_if_without(what_if, ended[i].allocation);
        g_ptr_array_add(ending, (gpointer)ended[i].allocation->uid);
    }
    if (!admits(query, what_if->node, &placement))
        return NULL;
    struct reservation *place = reservation_new(
        node->name, what_if_allocation(query->nominees->uid, query->nominees->priority, &placement));
    for (guint i = 0; i < ending->len; i++)
        g_ptr_array_add(place->ending, g_strdup(ending->pdata[i]));
    return place;
}

/* --- on any ----------------------------------------------------------------------------------- */

struct card_values {
    const struct node *node;
    int64_t need; /* at least */
};

static int compare_values(const void *a, const void *b)
{
    const struct card_values *left = a, *right = b;

    if (left->need != right->need)
        return left->need < right->need ? -1 : 1;
    return strcmp(left->node->name, right->node->name);
}

/* Whether the pod could go to the node now, or, if not, whether the end of others could help. */
static bool fits_now(const struct reservation_query *query, const struct node *node, bool *ret_could)
{
    const struct node *seen = nominees_see(query->nominees, node);
    const struct request *request =
        reservation_read_for(node, query->nominees->admission.request);
    enum reason reason;

    *ret_could = true;
    if (request && !request->terms && reservation_is_hopeless(seen, request))
        return false;
    g_autoptr(what_if) cover = reservations_cover(seen, query->before, query->n_before);
    const enum admission admission = dialect_admit(
        cover ? cover->node : seen, &query->nominees->admission, NULL, &reason);

    *ret_could = admission == ADMISSION_NO && reason_info(reason)->resolvable;
    return admission != ADMISSION_NO;
}

struct reservation *reservation_choose(const struct reservation_query *query, bool *ret_blocked)
{
    const GPtrArray *nodes = ledger_nodes(query->ledger);
    const struct request *request = query->nominees->admission.request;
    g_autofree struct card_values *values = g_new(struct card_values, nodes->len + 1);
    struct reservation *best = NULL;
    int64_t best_need = INT64_MAX, need;
    size_t n = 0;
    bool could;

    *ret_blocked = false;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->present || node->cordoned || quota_room_refuse(query->room, node, NULL) != REASON_NONE)
            continue;
        if (fits_now(query, node, &could))
            return reservation_new(node->name, allocation_new(query->nominees->uid, "",
                                                        query->nominees->uid, 0));
        const struct request *asks = could ? reservation_read_for(node, request) : NULL;
        need = asks ? foresee(node, asks) : INT64_MAX;
        if (need < INT64_MAX)
            values[n++] = (struct card_values){node, need};
    }
    *ret_blocked = n > 0;
    qsort(values, n, sizeof *values, compare_values);
    for (size_t i = 0; i < n && i < TRIED_MAX && values[i].need < best_need; i++) {
        struct reservation *place = look(query, values[i].node, &need);
        if (!place || need >= best_need) {
            reservation_unref(place);
            continue;
        }
        reservation_unref(best);
        best = place;
        best_need = need;
    }
    return best;
}

bool reservation_holds(const struct reservation *place, const struct reservation_query *query)
{
    const struct node *node = ledger_node(query->ledger, place->node);
    bool could;

    if (!node || !node->present || node->cordoned ||
        quota_room_refuse(query->room, node, NULL) != REASON_NONE)
        return false;
    if (reservation_is_open(place))
        return fits_now(query, node, &could);
    g_autoptr(what_if) what_if =
        later(nominees_see(query->nominees, node), query->before, query->n_before);
    return come(place, what_if);
}

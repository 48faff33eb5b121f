/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod may go to a node now, beside those whose cards the node side has yet to hand out. */
#include "core/ledger.h"
#include "core/node.h"
#include "dialect/annotations.h"
#include "dialect/marks/card_order.h"
#include "policy/effort/placement_search.h"

#include <gpuledger/dialect.h>

/* The pod's request as a node side that runs on the node reads it; NULL: none of them does. */
static const struct request *pick_alternative(const struct node *node,
                                              const struct request *request)
{
    while (request && request->dialect != node->dialect && !node_offers(node, request->dialect))
        request = request->alternative;
    return request;
}

/* The pod's request as the node side will read it that was away when the node was first seen. */
static const struct request *pick_sketched(const struct node *node, const struct request *request)
{
    while (request && !dialect_reads(node->sketch.dialect, request->dialect->resources[0]))
        request = request->alternative;
    return request;
}

/* A node side that chooses cards by itself knows nothing of what others hold. */
static bool is_in_other_use(const struct node *node, const struct dialect *dialect)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; j < other->n_shares; j++) {
            const struct dialect *its = allocation_share_dialect(other, &other->shares[j]);
            if (its != dialect && !(its->names_cards && dialect->names_cards))
                return true;
        }
    }
    return false;
}

/* Another scheduler places pods there, too, and cannot be told which cards this one has. */
static bool is_unseen(const struct node *node, const struct dialect *dialect)
{
    bool told = false;

    for (int32_t i = 0; !dialect->names_cards && i < node->n_dialects; i++)
        told |= node->dialects[i]->write_seen != NULL;
    return told;
}

/* The node side's, else the pod's, the node's, the administrator's. */
static const struct policy *pick_policy(const struct node *node, const struct request *request,
                                        const struct policy *policy)
{
    if (request->dialect->policy)
        return request->dialect->policy;
    if (request->terms && request->terms->policy)
        return request->terms->policy;
    return node->policy ? node->policy : policy;
}

static enum reason check_node(const struct node *node, const struct request *request,
                              const struct dialect_options *options)
{
    const struct terms *terms = request->terms;

    if (terms && terms->groupless)
        return REASON_CLASS_GROUP;
    if (terms && (node->compute < terms->compute_min || node->driver < terms->driver_min))
        return REASON_TERMS;
    if (terms && node_isolation(node, request) < terms->isolation_min)
        return REASON_ISOLATION;
    if (is_unseen(node, request->dialect))
        return REASON_OTHER_DIALECT;
    if (node_is_mixed(node) && card_order_stranger(node, request->dialect))
        return REASON_CARD_NUMBERS;
    if (node_is_mixed(node) && is_in_other_use(node, request->dialect))
        return REASON_OTHER_USE;
    return request->dialect->refuse(node, request, options);
}

static enum reason waiting_reason(const struct request *request)
{
    return request->dialect->one_in_flight ? REASON_AWAITING_TURN : REASON_AWAITING_ASSIGNMENT;
}

enum reason dialect_why_wait(const struct node *node, const struct request *request)
{
    if (node->paused)
        return REASON_PLUGIN_AWAY;
    return waiting_reason(pick_alternative(node, request));
}

/* Whether the node's summary says that there is room, and nobody wants to know where. It does not know of
 * cards that the pod must not get where the node side picks one. */
static bool has_obvious_room(const struct node *node, const struct request *request,
                             const struct placement *wanted)
{
    return !wanted && !node->sketch.dialect && !request->dialect->policy &&
           placement_is_obvious(node, request);
}

static struct placement_query ask_for(const struct node *node, const struct request *request,
                                      const struct admission_query *query)
{
    return (struct placement_query){pick_policy(node, request, query->policy), query->demand,
                                    CARD_UNKNOWN, query->work};
}

static enum reason find(const struct node *node, const struct request *request,
                        const struct admission_query *query, int32_t pinned,
                        struct placement *ret_placement)
{
    struct placement_query asked = ask_for(node, request, query);

    asked.pinned = pinned;
    return placement_search(node, request, &asked, ret_placement);
}

/* Kept out of line: its placement is large, and waiting is rare. */
G_GNUC_NO_INLINE static enum admission
admit_beside_waiting(const struct node *node, const struct request *request,
                     const struct admission_query *query, const struct in_flight *in_flight,
                     struct placement *ret_placement, enum reason *ret_reason)
{
    const bool obvious = has_obvious_room(node, request, ret_placement);
    SCRATCH struct placement scratch;

    /* kubelet would turn the pod away. A bind that is here may wait. */
    if (node->paused && query->awaits_plugin)
        return ADMISSION_WAIT;
    if (node->paused) {
        *ret_reason = REASON_PLUGIN_AWAY;
        return ADMISSION_NO;
    }
    if (!ret_placement)
        ret_placement = &scratch;
    if (in_flight->card != CARD_UNKNOWN &&
        find(node, request, query, in_flight->card, ret_placement) == REASON_NONE)
        return ADMISSION_YES;
    *ret_reason = obvious ? REASON_NONE : find(node, request, query, CARD_UNKNOWN, ret_placement);
    if (*ret_reason != REASON_NONE)
        return ADMISSION_NO;
    if (query->now_ns - in_flight->since_ns < query->patience_ns)
        return ADMISSION_WAIT;
    *ret_reason = waiting_reason(request);
    return ADMISSION_NO;
}

/* Out of line for the same reason: filter gets here for nodes without room only. */
G_GNUC_NO_INLINE static enum admission admit_freely(const struct node *node,
                                                    const struct request *request,
                                                    const struct admission_query *query,
                                                    struct placement *ret_placement,
                                                    enum reason *ret_reason)
{
    SCRATCH struct placement scratch;

    *ret_reason =
        find(node, request, query, CARD_UNKNOWN, ret_placement ? ret_placement : &scratch);
    return *ret_reason == REASON_NONE ? ADMISSION_YES : ADMISSION_NO;
}

/* Who has vanished may still be served in the newcomer's place, whatever card that is on. */
static void mind_departed(const struct node *node, const struct request *request,
                          struct in_flight *in_flight)
{
    for (guint i = 0; i < node->departed->len; i++) {
        const struct departed *other = &g_array_index(node->departed, struct departed, i);
        if (other->dialect != request->dialect ||
            (!request->dialect->one_in_flight && other->match_amount != request->match_amount))
            continue;
        in_flight->since_ns = in_flight->restricted
                                  ? MIN(in_flight->since_ns, other->assume_time_ns)
                                  : other->assume_time_ns;
        in_flight->restricted = true;
        in_flight->card = CARD_UNKNOWN;
    }
}

static bool stands(const struct node *node, const struct dialect *dialect, int64_t amount)
{
    const struct promised *promised = node_promised(node, dialect, amount);

    return promised && !(dialect->outranks && dialect->outranks(node, promised->time));
}

/* The node side might give the pod what another one was promised. */
static bool may_be_mistaken(const struct node *node, const struct request *request)
{
    return stands(node, request->dialect, 0) ||
           stands(node, request->dialect, request->match_amount);
}

/* The request as a node side reads it that may serve it; NULL: none may. */
static const struct request *check(const struct node *node, const struct admission_query *query,
                                   struct in_flight *ret_in_flight, enum reason *ret_reason)
{
    const struct request *request = NULL;

    *ret_in_flight = (struct in_flight){.card = CARD_UNKNOWN};
    *ret_reason = REASON_NONE;
    if (!node || !node->present)
        *ret_reason = REASON_NODE_UNKNOWN;
    else if (node->sketch.dialect && (request = pick_sketched(node, query->request)))
        ret_in_flight->restricted = true;
    else if (!node->dialect)
        *ret_reason = node->limited ? REASON_NODE_LIMIT : REASON_NOT_GPU_SHARE;
    else if (!(request = pick_alternative(node, query->request)))
        *ret_reason = REASON_OTHER_DIALECT;
    else if (!annotations_may_fit(request))
        *ret_reason = REASON_ANNOTATIONS;
    else if (node_is_silent(node, request->dialect, query->now_ns))
        *ret_reason = REASON_PLUGIN_SILENT;
    else
        *ret_reason = check_node(node, request, query->options);
    if (*ret_reason == REASON_NONE && node->promised && may_be_mistaken(node, request))
        *ret_reason = REASON_PROMISE_STANDS;
    if (*ret_reason != REASON_NONE || node->sketch.dialect)
        return *ret_reason == REASON_NONE ? request : NULL;
    if (node->n_waiting > 0 && request->dialect->in_flight)
        request->dialect->in_flight(node, request, ret_in_flight);
    if (node->departed && request->dialect->in_flight)
        mind_departed(node, request, ret_in_flight);
    ret_in_flight->restricted |= node->paused;
    return request;
}

/* Whether the request, of the node's only dialect, has nothing to wait for and room by the node's summary:
 * so it is for most nodes of most calls. False: only the rest knows, and so where the node side picks the
 * card: it may be one that the pod must not get. */
static bool is_obvious(const struct node *node, const struct admission_query *query)
{
    const struct request *request = query->request;

    return node && node->present && node->dialect == request->dialect && !node->sketch.dialect &&
           request->annotations == 0 && !request->dialect->policy && node->n_waiting == 0 &&
           !node->departed && !node->promised && !node->paused &&
           !node_is_silent(node, request->dialect, query->now_ns) &&
           placement_is_obvious(node, request) &&
           request->dialect->refuse(node, request, query->options) == REASON_NONE;
}

enum admission dialect_admit(const struct node *node, const struct admission_query *query,
                             struct placement *ret_placement, enum reason *ret_reason)
{
    struct in_flight in_flight;

    if (!ret_placement && is_obvious(node, query)) {
        *ret_reason = REASON_NONE;
        return ADMISSION_YES;
    }
    const struct request *request = check(node, query, &in_flight, ret_reason);
    if (!request)
        return ADMISSION_NO;
    if (in_flight.restricted)
        return admit_beside_waiting(node, request, query, &in_flight, ret_placement, ret_reason);
    return admit_freely(node, request, query, ret_placement, ret_reason);
}

enum admission dialect_admits(const struct node *node, const struct admission_query *query)
{
    struct in_flight in_flight;
    enum reason reason;
    const struct request *request = check(node, query, &in_flight, &reason);

    if (!request)
        return ADMISSION_NO;
    if (in_flight.restricted)
        return admit_beside_waiting(node, request, query, &in_flight, NULL, &reason);
    const struct placement_query asked = ask_for(node, request, query);
    return placement_suffices(node, request, &asked) ? ADMISSION_YES : ADMISSION_NO;
}

int64_t dialect_wait_ends(const struct node *node, const struct admission_query *query)
{
    struct in_flight in_flight;
    enum reason reason;

    if (!check(node, query, &in_flight, &reason) || !in_flight.restricted || node->paused)
        return INT64_MAX;
    return in_flight.since_ns > INT64_MAX - query->patience_ns
               ? INT64_MAX
               : in_flight.since_ns + query->patience_ns;
}

bool dialect_serves(const struct node *node, const struct request *request)
{
    return node->dialect && pick_alternative(node, request);
}

bool dialect_asks_one_card(const struct node *node, const struct request *request)
{
    const struct card_ask *ask = &request->asks[0];

    return request->n_asks == 1 && ask->count == 1 && !ask->device && !request->terms &&
           !request->alternative && !request->dialect->policy && node->n_dialects == 1 &&
           !node_is_mixed(node) && node->n_waiting == 0 && !node->departed && !node->promised &&
           !node->paused && !node->sketch.dialect;
}

bool dialect_is_fickle(const struct request *request)
{
    while (request && !request->dialect->policy)
        request = request->alternative;
    return request;
}

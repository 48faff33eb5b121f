/* SPDX-License-Identifier: Apache-2.0 */
#include "app/grant.h"

#include "app/booking.h"

#include <gpuledger/error.h>

bool grant_fail(struct grant *grant, enum bind_result result, GError **error, const char *text)
{
    grant->result = result;
    g_set_error_literal(error, GPULEDGER_ERROR,
                        result == BIND_RESULT_INVALID ? GPULEDGER_ERROR_INVALID
                                                      : GPULEDGER_ERROR_CONFLICT,
                        text);
    return false;
}

static enum grant_step refuse(struct grant *grant, enum bind_result result, GError **error,
                              const char *text)
{
    grant_fail(grant, result, error, text);
    return GRANT_FAILED;
}

/* --- an earlier bind ------------------------------------------------------------------------ */

static void describe(struct grant *grant, const struct allocation *allocation)
{
    annotations_clear(&grant->annotations);
    grant->dialect = allocation->dialect;
    allocation->dialect->write_annotations(allocation, allocation->node, &grant->annotations);
    grant->card = allocation->shares[0].card;
}

/* A booking that another replica left holds no names that annotations carry. */
static void adopt_terms(struct allocation *held, const struct request *request)
{
    while (request && request->dialect != held->dialect)
        request = request->alternative;
    if (request && !held->terms)
        held->terms = terms_ref(request->terms);
}

/* The pod has an allocation already. */
static enum grant_step join_earlier(struct grant *grant, struct allocation *held,
                                    const struct moment *moment, GError **error)
{
    if (!g_str_equal(held->node->name, grant->args->node)) {
        g_autofree char *text =
            g_strdup_printf("the pod is being bound to node '%s' already", held->node->name);
        return refuse(grant, BIND_RESULT_CONFLICT, error, text);
    }
    switch (held->state) {
    case ALLOCATION_BOUND:
    case ALLOCATION_CONFIRMED:
        grant->card = held->shares[0].card;
        grant->result = BIND_RESULT_REPEATED;
        return GRANT_DONE;
    case ALLOCATION_UNKNOWN:
        held->state = ALLOCATION_RESERVED;
        adopt_terms(held, grant->request);
        held->since_ms = moment->now_ms;
        describe(grant, held);
        grant->doubtful = true;
        return GRANT_SEND;
    case ALLOCATION_RESERVED:
        break;
    }
    return GRANT_WAIT_BIND;
}

/* --- a new one ------------------------------------------------------------------------------ */

/* Others of its namespace may have been bound since filter was asked. */
static enum reason check_quotas(const struct grant *grant, const struct store *store,
                                const struct node *node, const struct placement *placement)
{
    g_autoptr(quota_room) room = quotas_room(store_quotas(store), store_ledger(store),
                                             grant->args->pod_namespace, grant->request);
    return quota_room_refuse(room, node, placement);
}

/* Leaves word of a fresh reservation to the next holder of the Lease. */
static enum grant_step enter(struct grant *grant, struct ledger *ledger,
                             const struct allocation *booked, GError **error)
{
    describe(grant, booked);
    if (journal_add(grant->journal, booked))
        return GRANT_SEND;
    ledger_drop(ledger, grant->args->pod_uid);
    return refuse(grant, BIND_RESULT_NOT_READY, error,
                  "too many binds are not settled; try again");
}

/* Where the pod goes on the node as it finds it, beside what older pods will have of it. */
static enum admission admit(const struct grant *grant, struct store *store,
                            const struct admission_query *query, const struct moment *moment,
                            struct placement *ret_placement, enum reason *ret_reason)
{
    const struct store_options *options = store_options(store);
    struct nominees nominees =
        store_nominees(store, query, grant->args->pod_uid, grant->priority);
    struct arrivals_query turn = {
        .ledger = store_ledger(store),
        .nominees = &nominees,
        .quotas = store_quotas(store),
        .now_ms = moment->now_ms,
        .hold_ms = options->hold_ms,
        .n_places = options->n_places,
    };
    const struct node *seen =
        nominees_see(&nominees, ledger_node(turn.ledger, grant->args->node));
    enum admission admission = dialect_admit(seen, query, ret_placement, ret_reason);

    arrivals_settle(store_arrivals(store), &turn);
    g_autoptr(trial) cover = admission == ADMISSION_NO
                                 ? NULL
                                 : arrivals_cover(store_arrivals(store), seen, &turn);
    if (cover) {
        admission = dialect_admit(cover->node, query, ret_placement, ret_reason);
        *ret_reason = admission == ADMISSION_NO ? REASON_EARLIER_POD : *ret_reason;
    }
    g_clear_pointer(&turn.older, g_ptr_array_unref);
    nominees_clear(&nominees);
    return admission;
}

static enum grant_step place(struct grant *grant, struct store *store, struct ledger *ledger,
                             const struct moment *moment, GError **error)
{
    const struct store_options *options = store_options(store);
    const struct node *node = ledger_node(ledger, grant->args->node);
    const struct booking_entry entry = {grant->args->pod_uid, grant->args->pod_namespace,
                                        grant->args->pod_name, moment};
    struct admission_query query = {
        .request = grant->request,
        .policy = options->policy,
        .options = &options->dialects,
        .now_ns = moment->now_ns,
        .patience_ns = INT64_MAX, /* here it is the deadline that ends patience */
        .demand = store_demand(store),
    };
    const struct allocation *booked = NULL;
    struct placement placement;
    enum reason reason;

    switch (admit(grant, store, &query, moment, &placement, &reason)) {
    case ADMISSION_YES:
        /* Sent now, its fate would not be known, and the card booked until it is settled. */
        if (moment->now_ms >= grant->send_until_ms)
            return refuse(grant, BIND_RESULT_TIMED_OUT, error,
                          "no time was left to bind the pod; try again");
        reason = check_quotas(grant, store, node, &placement);
        if (reason == REASON_NONE)
            booked = booking_reserve(ledger, node, &entry, &placement, &reason);
        break;
    case ADMISSION_NO:
        break;
    case ADMISSION_WAIT:
        grant->waits = dialect_why_wait(node, grant->request);
        return GRANT_WAIT_NODE;
    }
    if (booked)
        return enter(grant, ledger, booked, error);
    metrics_count(COUNTER_REFUSALS, reason);
    return refuse(grant, BIND_RESULT_NO_ROOM, error, reason_info(reason)->text);
}

enum grant_step grant_look(struct grant *grant, struct store *store, struct ledger *ledger,
                           const struct moment *moment, GError **error)
{
    struct allocation *held = ledger_get(ledger, grant->args->pod_uid);
    const struct request *pending = store_pending(store, grant->args->pod_uid);

    if (grant->call == 0)
        grant->call = moment->number;
    if (!grant->request && pending) {
        grant->request = request_dup(pending);
        grant->priority = store_pending_priority(store, grant->args->pod_uid);
    }
    if (held)
        return join_earlier(grant, held, moment, error);
    return grant->request ? place(grant, store, ledger, moment, error) : GRANT_FETCH;
}

/* --- the end -------------------------------------------------------------------------------- */

void grant_conclude(struct ledger *ledger, const char *uid, enum bind_result result,
                    const struct moment *moment)
{
    struct allocation *allocation = ledger_get(ledger, uid);

    /* Gone: the watch has seen the pod's end. Confirmed: the watch knows better than we do. */
    if (!allocation || allocation->state == ALLOCATION_CONFIRMED)
        return;
    allocation->since_ms = moment->now_ms;
    if (result == BIND_RESULT_BOUND)
        ledger_set_state(ledger, allocation, ALLOCATION_BOUND);
    else if (result == BIND_RESULT_UNKNOWN)
        ledger_set_state(ledger, allocation, ALLOCATION_UNKNOWN);
    else if (allocation->state == ALLOCATION_RESERVED) /* else it is bound all the same */
        ledger_drop(ledger, uid);
}

void grant_clear(struct grant *grant)
{
    annotations_clear(&grant->annotations);
    request_free(grant->request);
    grant->request = NULL;
    if (grant->asks)
        g_string_free(grant->asks, TRUE);
    grant->asks = NULL;
}

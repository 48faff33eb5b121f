/* SPDX-License-Identifier: Apache-2.0 */
#include "app/grant.h"

#include "app/booking.h"
#include "app/steering.h"

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
    g_free(grant->facts);
    grant->facts = grant->seals ? seal_describe(allocation) : NULL;
    grant->assume_time_ns = allocation->assume_time_ns;
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

static struct pod_view describe_pod(const struct grant *grant)
{
    return (struct pod_view){
        .uid = grant->args->pod_uid,
        .ns = grant->args->pod_namespace,
        .priority = grant->priority,
    };
}

/* Others may have come since filter was asked, so it is asked again. Here it is the deadline that ends
 * patience. */
static enum reason ask(struct grant *grant, struct store *store, const struct node *node,
                       const struct moment *moment, struct placement *ret_placement)
{
    const struct pod_view pod = describe_pod(grant);
    struct feasibility question;

    feasibility_init(&question, store,
                     &(struct feasibility_about){&pod, grant->request, moment, WITHOUT_PATIENCE});
    const enum reason reason = feasibility_ask(&question, node, ret_placement);
    grant->waits = reason == REASON_NONE && question.waits
                       ? dialect_why_wait(question.seen, grant->request)
                       : REASON_NONE;
    feasibility_clear(&question);
    return reason;
}

/* The node side would let the pod wait. */
static enum grant_step wait_or_turn(struct grant *grant, struct store *store,
                                    const struct moment *moment, GError **error)
{
    const struct pod_view pod = describe_pod(grant);

    if (!steering_turns(store, &(struct feasibility_about){&pod, grant->request, moment},
                        grant->args->node, grant->send_until_ms))
        return GRANT_WAIT_NODE;
    metrics_count(COUNTER_REFUSALS, REASON_OTHERS_COMING);
    return refuse(grant, BIND_RESULT_NO_ROOM, error, reason_info(REASON_OTHERS_COMING)->text);
}

static enum grant_step place(struct grant *grant, struct store *store, struct ledger *ledger,
                             const struct moment *moment, GError **error)
{
    const struct node *node = ledger_node(ledger, grant->args->node);
    const struct booking_entry entry = {grant->args->pod_uid, grant->args->pod_namespace,
                                        grant->args->pod_name, moment};
    const struct allocation *booked = NULL;
    struct placement placement;
    enum reason reason = ask(grant, store, node, moment, &placement);

    if (grant->waits != REASON_NONE)
        return wait_or_turn(grant, store, moment, error);
    hints_forget(store_hints(store), grant->args->pod_uid);
    /* Sent now, its fate would not be known, and the card booked until it is settled. */
    if (reason == REASON_NONE && moment->now_ms >= grant->send_until_ms)
        return refuse(grant, BIND_RESULT_TIMED_OUT, error,
                      "no time was left to bind the pod; try again");
    if (reason == REASON_NONE)
        booked = booking_reserve(ledger, node, &entry, &placement, &reason);
    if (booked)
        return enter(grant, ledger, booked, error);
    metrics_count(COUNTER_REFUSALS, reason);
    return refuse(grant, BIND_RESULT_NO_ROOM, error, reason_info(reason)->text);
}

/* Takes what the pod asks for now, as the watch has it; what a GET said counts until the end. */
static void read_request(struct grant *grant, const struct store *store)
{
    const struct request *pending = store_pending(store, grant->args->pod_uid);

    if (grant->fetched)
        return;
    if (!pending || !grant->request || !request_equal(grant->request, pending)) {
        request_free(grant->request);
        grant->request = pending ? request_dup(pending) : NULL;
    }
    grant->priority = store_pending_priority(store, grant->args->pod_uid);
}

enum grant_step grant_look(struct grant *grant, struct store *store, struct ledger *ledger,
                           const struct moment *moment, GError **error)
{
    struct allocation *held = ledger_get(ledger, grant->args->pod_uid);

    if (grant->call == 0)
        grant->call = moment->number;
    read_request(grant, store);
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
    g_clear_pointer(&grant->facts, g_free);
    request_free(grant->request);
    grant->request = NULL;
    if (grant->asks)
        g_string_free(grant->asks, TRUE);
    grant->asks = NULL;
}

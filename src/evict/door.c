/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/door.h"

#include "base/metrics.h"
#include "store/cluster.h"
#include "store/store.h"

static enum door_answer answer_of(enum eviction eviction)
{
    switch (eviction) {
    case EVICTION_DONE:
        return DOOR_OPEN;
    case EVICTION_LATER:
    case EVICTION_DOUBTED:
    case EVICTION_MOVING:
        return DOOR_LATER;
    case EVICTION_FAILED:
        return DOOR_FAILED;
    case EVICTION_UNKNOWN:
        return DOOR_UNKNOWN;
    }
    return DOOR_UNKNOWN;
}

static enum outcome read_pod(const struct door_order *order, struct evictee *ret_evictee,
                             GError **error)
{
    return order->api
               ? order->api->read(order->api_data, order->ns, order->name, ret_evictee, error)
               : evictee_read(order->client, order->ns, order->name, ret_evictee, error);
}

static enum eviction send_eviction(const struct door_order *order, const struct evictee *evictee,
                                   bool try, GError **error)
{
    return order->api ? order->api->send(order->api_data, evictee, try, error)
                      : eviction_send(order->client, evictee, try, error);
}

static void count(const struct door_order *order, enum eviction_outcome outcome)
{
    metrics_count_eviction(order->ender, outcome);
}

/* --- what is said ------------------------------------------------------------------------------ */

static enum pod_event_cause cause_of(const struct door_order *order, enum door_news news)
{
    switch (news) {
    case DOOR_REFUSED:
        return POD_EVENT_EVICTION_REFUSED;
    case DOOR_PAUSED:
        return POD_EVENT_EVICTIONS_PAUSED;
    default:
        return order->ender == ENDER_RECLAIM ? POD_EVENT_RECLAIMED : POD_EVENT_MOVED;
    }
}

void door_tell(const struct door_order *order, enum door_news news, const char *note)
{
    const struct pod_event event = {cause_of(order, news), order->ns, order->name, order->uid,
                                    note};
    g_autoptr(GError) failure = NULL;

    if (news != DOOR_ENDS_POD &&
        (!order->permits ||
         !permits_may_tell(order->permits, order->uid, pod_event_info(event.cause)->reason)))
        return;
    if (order->cluster)
        pod_event_post(order->cluster, &event);
    else if (eviction_tell(order->client, &event, &failure) != OUTCOME_OK && order->ret_untold)
        *order->ret_untold = g_strdup(failure->message);
}

/* `order` may leave the UID out. */
static void tell_of(const struct door_order *order, const struct evictee *evictee,
                    enum door_news news, const char *note)
{
    struct door_order of = *order;

    of.uid = evictee->uid;
    door_tell(&of, news, note);
}

static void tell_refusal(const struct door_order *order, const struct evictee *evictee,
                         const GError *failure)
{
    g_autofree char *note =
        g_strdup_printf("gpuledger was to evict the pod (%s), and was refused: %s",
                        metrics_capability(order->ender), failure->message);

    tell_of(order, evictee, DOOR_REFUSED, note);
}

static void record(const struct door_order *order, const struct evictee *evictee,
                   enum eviction_outcome outcome)
{
    if (order->store)
        store_tell_eviction(order->store, &(struct observed_eviction){
                                              .capability = metrics_capability(order->ender),
                                              .outcome = metrics_eviction_outcome(outcome),
                                              .whom = order->whom ? order->whom : "",
                                              .ns = evictee->ns,
                                              .name = evictee->name,
                                              .uid = evictee->uid,
                                              .node = evictee->node ? evictee->node : ""});
}

/* --- looking ---------------------------------------------------------------------------------- */

static enum door_answer stay(const struct door_order *order, const char *why, GError **error)
{
    count(order, EVICTION_OUTCOME_STAYS);
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, why);
    return DOOR_STAYS;
}

enum door_answer door_look(const struct door_order *order, struct evictee *ret_evictee,
                           GError **error)
{
    GError *failure = NULL;
    const enum outcome outcome = read_pod(order, ret_evictee, &failure);
    const bool other =
        outcome == OUTCOME_OK && order->uid && g_strcmp0(ret_evictee->uid, order->uid) != 0;

    if (outcome == OUTCOME_NOT_FOUND || other || (outcome == OUTCOME_OK && ret_evictee->ended)) {
        g_clear_error(&failure);
        return DOOR_GONE;
    }
    if (outcome != OUTCOME_OK) {
        g_propagate_error(error, failure);
        return DOOR_FAILED;
    }
    if (ret_evictee->ends)
        return DOOR_ENDS;
    const enum pod_tie tie = may_end_not(order->ender, order->force, ret_evictee->ties);
    if (tie)
        return stay(order, may_end_text(tie), error);
    if (permits_young_ms(order->permits, order->ender, ret_evictee->started_s) > 0)
        return stay(order, PERMITS_YOUNG, error);
    return DOOR_OPEN;
}

static enum eviction_outcome outcome_of(enum eviction eviction)
{
    switch (eviction) {
    case EVICTION_DONE:
        return EVICTION_OUTCOME_EVICTED;
    case EVICTION_LATER:
    case EVICTION_DOUBTED:
        return EVICTION_OUTCOME_BUDGET;
    case EVICTION_MOVING:
        return EVICTION_OUTCOME_MOVING;
    case EVICTION_FAILED:
        return EVICTION_OUTCOME_FAILED;
    case EVICTION_UNKNOWN:
        break;
    }
    return EVICTION_OUTCOME_UNKNOWN;
}

/* What would end is counted when it does. */
enum door_answer door_try(const struct door_order *order, const struct evictee *evictee,
                          GError **error)
{
    GError *failure = NULL;
    const enum eviction eviction = send_eviction(order, evictee, true, &failure);

    if (eviction == EVICTION_DONE)
        return DOOR_OPEN;
    count(order, outcome_of(eviction));
    if (eviction != EVICTION_UNKNOWN)
        tell_refusal(order, evictee, failure);
    g_propagate_error(error, failure);
    return answer_of(eviction);
}

/* --- ending ----------------------------------------------------------------------------------- */

static bool serves(const struct door_order *order)
{
    return !order->leadership || leadership_term(order->leadership) == order->term;
}

static enum door_answer wait(const struct door_order *order, enum eviction_outcome outcome,
                             GError **error, const char *why)
{
    count(order, outcome);
    g_set_error_literal(error, GPULEDGER_ERROR, DOOR_HELD, why);
    return outcome == EVICTION_OUTCOME_OBSERVED ? DOOR_OBSERVED : DOOR_LATER;
}

/* DOOR_OPEN: evictions are not stopped. */
static enum door_answer check_stop(const struct door_order *order, GError **error)
{
    g_autofree char *stopped = order->permits ? permits_why_stopped(order->permits) : NULL;
    g_autofree char *why = stopped ? g_strconcat("evictions are stopped: ", stopped, NULL) : NULL;

    return why ? wait(order, EVICTION_OUTCOME_STOPPED, error, why) : DOOR_OPEN;
}

/* DOOR_OPEN: it has a place within the limits. */
static enum door_answer take_place(const struct door_order *order, const struct evictee *evictee,
                                   GError **error)
{
    const enum door_answer stop = check_stop(order, error);

    if (!order->permits || stop != DOOR_OPEN)
        return stop;
    const enum limit limit =
        permits_observe(order->permits, order->ender)
            ? permits_forbid(order->permits, order->ender, evictee->ns)
            : permits_take(order->permits, order->ender, evictee->ns, evictee->uid);
    return limit == LIMIT_NONE ? DOOR_OPEN
                               : wait(order, EVICTION_OUTCOME_LIMITED, error, limit_texts[limit]);
}

/* What became of the place: of what is not known to have been refused it stays taken. */
static void end_place(const struct door_order *order, const struct evictee *evictee,
                      enum eviction eviction)
{
    int64_t now_ms;

    if (!order->permits)
        return;
    struct limiter *limiter = permits_lock(order->permits, &now_ms);
    switch (eviction) {
    case EVICTION_DONE:
        limiter_done(limiter, order->ender, evictee->uid, now_ms);
        break;
    case EVICTION_UNKNOWN:
    case EVICTION_DOUBTED:
    case EVICTION_MOVING:
        limiter_doubt(limiter, order->ender, evictee->uid, now_ms);
        break;
    case EVICTION_LATER:
    case EVICTION_FAILED:
        limiter_withdraw(limiter, order->ender, evictee->uid);
        break;
    }
    permits_unlock(order->permits);
}

/* The caller may ask the API server, which takes long: what else may have changed meanwhile is asked afterwards. */
static enum door_answer ask(const struct door_order *order, GError **error)
{
    if (order->is_wanted && !order->is_wanted(order->data, error))
        return DOOR_UNWANTED;
    if (serves(order))
        return check_stop(order, error);
    leadership_set_error(error);
    return DOOR_UNWANTED;
}

static enum door_answer evict(const struct door_order *order, const struct evictee *evictee,
                              GError **error)
{
    GError *failure = NULL;
    const enum eviction eviction = send_eviction(order, evictee, false, &failure);

    end_place(order, evictee, eviction);
    count(order, outcome_of(eviction));
    record(order, evictee, outcome_of(eviction));
    if (eviction == EVICTION_DONE && order->note)
        tell_of(order, evictee, DOOR_ENDS_POD, order->note);
    else if (eviction != EVICTION_DONE && eviction != EVICTION_UNKNOWN)
        tell_refusal(order, evictee, failure);
    if (failure)
        g_propagate_error(error, failure);
    return answer_of(eviction);
}

enum door_answer door_end(const struct door_order *order, const struct evictee *evictee,
                          GError **error)
{
    const enum door_answer place = take_place(order, evictee, error);

    if (place != DOOR_OPEN)
        return place;
    const enum door_answer wanted = ask(order, error);
    if (wanted != DOOR_OPEN) {
        end_place(order, evictee, EVICTION_FAILED);
        return wanted;
    }
    if (permits_observe(order->permits, order->ender))
        return wait(order, EVICTION_OUTCOME_OBSERVED, error,
                    "it would end; the capability only observes (--evictions-observe)");
    return evict(order, evictee, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "evict/door.h"

#include <gpuledger/error.h>

static enum door_answer answer_of(enum eviction eviction)
{
    switch (eviction) {
    case EVICTION_DONE:
        return DOOR_OPEN;
    case EVICTION_LATER:
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

static enum door_answer send_eviction(const struct door_order *order, const struct evictee *evictee,
                                      bool try, GError **error)
{
    return answer_of(order->api ? order->api->send(order->api_data, evictee, try, error)
                                : eviction_send(order->client, evictee, try, error));
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
    if (!tie)
        return DOOR_OPEN;
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, may_end_text(tie));
    return DOOR_STAYS;
}

enum door_answer door_try(const struct door_order *order, const struct evictee *evictee,
                          GError **error)
{
    return send_eviction(order, evictee, true, error);
}

static bool serves(const struct door_order *order)
{
    return !order->leadership || leadership_term(order->leadership) == order->term;
}

enum door_answer door_end(const struct door_order *order, const struct evictee *evictee,
                          GError **error)
{
    if (!serves(order) || (order->is_wanted && !order->is_wanted(order->data, error)))
        return DOOR_UNWANTED;
    const enum door_answer answer = send_eviction(order, evictee, false, error);
    if (answer == DOOR_OPEN && order->note)
        eviction_tell(order->client, evictee, order->note, NULL);
    return answer;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/rows.h"

#include <gpuledger/error.h>

const struct dialect *const dialects[] = {
    &dialect_gpushare,
    NULL,
};

const struct dialect *dialect_find(const char *name)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (g_strcmp0(dialects[i]->name, name) == 0)
            return dialects[i];
    }
    return NULL;
}

struct request *dialect_read_request(const struct pod_view *view,
                                     const struct dialect_options *options, GError **error)
{
    g_autoptr(request) found = NULL;

    for (size_t i = 0; dialects[i]; i++) {
        GError *failure = NULL;
        g_autoptr(request) request = dialects[i]->read_request(view, options, &failure);
        if (failure) {
            g_propagate_error(error, failure);
            return NULL;
        }
        if (request && found) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "the pod asks for GPUs in two ways, '%s' and '%s': keep one",
                        found->dialect->resources[0], request->dialect->resources[0]);
            return NULL;
        }
        if (request)
            found = g_steal_pointer(&request);
    }
    return g_steal_pointer(&found);
}

struct allocation *dialect_read_allocation(const struct pod_view *view,
                                           const struct dialect_options *options,
                                           char **ret_warning)
{
    for (size_t i = 0; dialects[i]; i++) {
        struct allocation *allocation = dialects[i]->read_allocation(view, options, ret_warning);
        if (allocation)
            return allocation;
    }
    return NULL;
}

bool dialect_read_topology(const struct node_view *view, const struct dialect_options *options,
                           struct topology *ret_topology, char **ret_warning, GError **error)
{
    for (size_t i = 0; dialects[i]; i++) {
        GError *failure = NULL;
        if (dialects[i]->read_topology(view, options, ret_topology, ret_warning, &failure))
            return true;
        if (failure) {
            g_propagate_error(error, failure);
            return false;
        }
    }
    return false;
}

/* --- annotations ---------------------------------------------------------------------------- */

void annotations_add(struct annotations *annotations, const char *key, char *take_value)
{
    g_assert(annotations->n < ANNOTATIONS_MAX);
    annotations->items[annotations->n].key = key;
    annotations->items[annotations->n].value = take_value;
    annotations->n++;
}

void annotations_clear(struct annotations *annotations)
{
    for (size_t i = 0; i < annotations->n; i++)
        g_free(annotations->items[i].value);
    annotations->n = 0;
}

/* --- admission ------------------------------------------------------------------------------ */

/* Kept out of line: its placement is large, and waiting is rare. */
G_GNUC_NO_INLINE static enum admission
admit_beside_waiting(const struct node *node, const struct admission_query *query,
                     const struct in_flight *in_flight, struct placement *ret_placement,
                     enum reason *ret_reason)
{
    struct placement scratch;

    if (!ret_placement)
        ret_placement = &scratch;
    if (in_flight->card != CARD_UNKNOWN &&
        placement_find(node, query->request, query->policy, in_flight->card, ret_placement) ==
            REASON_NONE)
        return ADMISSION_YES;
    *ret_reason =
        placement_find(node, query->request, query->policy, CARD_UNKNOWN, ret_placement);
    if (*ret_reason != REASON_NONE)
        return ADMISSION_NO;
    if (query->now_ns - in_flight->since_ns < query->patience_ns)
        return ADMISSION_WAIT;
    *ret_reason = REASON_AWAITING_ASSIGNMENT;
    return ADMISSION_NO;
}

/* Out of line for the same reason: filter gets here for nodes without room only. */
G_GNUC_NO_INLINE static enum admission admit_freely(const struct node *node,
                                                    const struct admission_query *query,
                                                    struct placement *ret_placement,
                                                    enum reason *ret_reason)
{
    struct placement scratch;

    *ret_reason = placement_find(node, query->request, query->policy, CARD_UNKNOWN,
                                 ret_placement ? ret_placement : &scratch);
    return *ret_reason == REASON_NONE ? ADMISSION_YES : ADMISSION_NO;
}

enum admission dialect_admit(const struct node *node, const struct admission_query *query,
                             struct placement *ret_placement, enum reason *ret_reason)
{
    const struct request *request = query->request;
    struct in_flight in_flight = {.card = CARD_UNKNOWN};

    *ret_reason = REASON_NONE;
    if (!node || !node->present)
        *ret_reason = REASON_NODE_UNKNOWN;
    else if (!node->dialect)
        *ret_reason = REASON_NOT_GPU_SHARE;
    else if (node->dialect != request->dialect)
        *ret_reason = REASON_OTHER_DIALECT;
    else
        *ret_reason = request->dialect->refuse(node, request, query->options);
    if (*ret_reason != REASON_NONE)
        return ADMISSION_NO;

    if (node->n_waiting > 0)
        request->dialect->in_flight(node, request, &in_flight);
    if (in_flight.restricted)
        return admit_beside_waiting(node, query, &in_flight, ret_placement, ret_reason);
    if (!ret_placement && placement_is_obvious(node, request))
        return ADMISSION_YES;
    return admit_freely(node, query, ret_placement, ret_reason);
}

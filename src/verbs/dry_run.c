/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter's answer without any effect, for an autoscaler: nodes that come whole and that nobody knows
 * are empty ones of their kind, made on a copy of the store. Nobody has asked kube-scheduler before,
 * so what it leaves out by itself is left out here.
 */
#include "verbs/extender.h"
#include "store/feasibility.h"
#include "wire/constraints.h"
#include "wire/extender.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>
#include <string.h>

/* The copy gets the nodes of the body that the cluster has not. */
static bool add_nodes(struct store *copy, struct json_arena *arena,
                      const struct filter_args *args, GError **error)
{
    const cJSON *item;
    size_t i = 0;

    cJSON_ArrayForEach (item, args->nodes) {
        const struct node *node = ledger_node(store_lock(copy), args->names[i]);
        const bool known = node && node->present;
        struct node_view view;
        store_unlock(copy);
        if (!known && !node_view_decode(arena, item, &view, error)) {
            g_prefix_error(error, "field 'Nodes.items': item %zu: ", i);
            return false;
        }
        if (!known)
            store_apply_node(copy, &view);
        i++;
    }
    return true;
}

static char *keep(struct json_arena *arena, const char *text)
{
    const size_t size = text ? strlen(text) + 1 : 0;

    return text ? memcpy(json_arena_alloc(arena, size), text, size) : NULL;
}

static void ask_nodes(struct store *copy, struct json_arena *arena,
                        const struct request *request, struct filter_result *result)
{
    const struct filter_args *args = result->args;
    enum reason *reasons = json_arena_alloc(arena, (args->n_names + 1) * sizeof *reasons);
    const char **barriers = json_arena_alloc(arena, (args->n_names + 1) * sizeof *barriers);
    struct feasibility question;
    struct moment moment;
    struct ledger *ledger = store_decide(copy, &moment);

    feasibility_init(&question, copy,
                     &(struct feasibility_about){&args->pod, request, &moment});
    for (size_t i = 0; i < args->n_names; i++) {
        const struct node *node = ledger_node(ledger, args->names[i]);
        const enum barrier barrier =
            node ? feasibility_barrier(&question, node) : BARRIER_NONE;
        g_autofree char *why = feasibility_tell_barrier(&question, node, barrier);
        reasons[i] = feasibility_ask(&question, node, NULL);
        barriers[i] = keep(arena, why);
    }
    feasibility_clear(&question);
    store_unlock(copy);
    result->reasons = reasons;
    result->barriers = barriers;
}

static bool dry_run(struct extender *extender, struct json_arena *arena, const char *body,
                    size_t length, struct json_writer *writer, GError **error)
{
    struct filter_args args;
    GError *failure = NULL;

    if (!store_check_synced(extender->store, error))
        return false;
    if (!filter_args_parse(arena, body, length, &args, error))
        return false;
    if (!constraints_decode(arena, &args.pod, error)) {
        g_prefix_error(error, "field 'Pod': ");
        return false;
    }
    g_autoptr(request) request =
        dialect_read_request(&args.pod, &store_options(extender->store)->dialects, &failure);
    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    struct filter_result result = {
        .args = &args,
        .reasons = json_arena_alloc(arena, (args.n_names + 1) * sizeof *result.reasons),
    };
    if (request) {
        g_autoptr(store) copy = store_copy(extender->store);
        if (!add_nodes(copy, arena, &args, error))
            return false;
        ask_nodes(copy, arena, request, &result);
    }
    filter_result_encode(writer, &result);
    return true;
}

void extender_filter_dry_run(struct extender *extender, const char *body, size_t length,
                             GString *reply)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct json_writer writer;

    json_writer_init(&writer, reply);
    if (!dry_run(extender, arena, body, length, &writer, &failure))
        filter_error_encode(&writer, failure->message);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nobody has asked kube-scheduler before, so what it leaves out by itself is left out here.
 */
#include "explain/dry_run.h"

#include "core/fail.h"
#include "dialect/profile/card_profile.h"
#include "explain/trial.h"
#include "wire/constraints.h"
#include "wire/extender.h"
#include "wire/kubernetes.h"
#include "core/reason/reasons.h"

#include <string.h>

#define WORK_MAX 5000000 /* pods times nodes */

/* The copy gets the nodes of the body that the cluster has not. */
static bool add_nodes(struct store *copy, struct json_arena *arena, const struct filter_args *args,
                      GError **error)
{
    const cJSON *item;
    size_t i = 0;

    cJSON_ArrayForEach (item, args->nodes) {
        const bool known = trial_knows(copy, args->names[i]);
        struct node_view view;
        if (!known && !node_view_decode(arena, item, &view, error)) {
            g_prefix_error(error, "field 'Nodes.items': item %zu: ", i);
            return false;
        }
        if (!known) {
            card_profile_apply(&store_options(copy)->dialects, arena, &view);
            trial_add_node(copy, &view, view.name);
        }
        i++;
    }
    return true;
}

static struct request *read_request(struct json_arena *arena, const struct store *store,
                                    struct pod_view *pod, GError **error)
{
    return constraints_decode(arena, pod, error)
               ? dialect_read_request(pod, &store_options(store)->dialects, error)
               : NULL;
}

/* --- one pod ---------------------------------------------------------------------------------- */

static char *keep(struct json_arena *arena, const char *text)
{
    const size_t size = text ? strlen(text) + 1 : 0;

    return text ? memcpy(json_arena_alloc(arena, size), text, size) : NULL;
}

static void ask_nodes(struct store *copy, struct json_arena *arena, const struct request *request,
                      struct filter_result *result)
{
    const struct filter_args *args = result->args;
    enum reason *reasons = json_arena_alloc(arena, (args->n_names + 1) * sizeof *reasons);
    const char **barriers = json_arena_alloc(arena, (args->n_names + 1) * sizeof *barriers);
    struct feasibility question;
    struct moment moment;
    struct ledger *ledger = store_decide(copy, &moment);

    feasibility_init(&question, copy,
                     &(struct feasibility_about){GATE_BY_EXPLAIN, &args->pod, request, &moment});
    for (size_t i = 0; i < args->n_names; i++) {
        const struct node *node = ledger_node(ledger, args->names[i]);
        const enum barrier barrier = node ? feasibility_barrier(&question, node) : BARRIER_NONE;
        g_autofree char *why = feasibility_tell_barrier(&question, node, barrier);
        reasons[i] = feasibility_ask(&question, node, NULL);
        barriers[i] = keep(arena, why);
    }
    feasibility_clear(&question);
    store_unlock(copy);
    result->reasons = reasons;
    result->barriers = barriers;
}

static bool answer_one(struct store *store, struct json_arena *arena, struct filter_args *args,
                       struct json_writer *writer, GError **error)
{
    GError *failure = NULL;
    g_autoptr(request) request = read_request(arena, store, &args->pod, &failure);

    if (failure) {
        g_propagate_prefixed_error(error, failure, "field 'Pod': ");
        return false;
    }
    struct filter_result result = {
        .args = args,
        .reasons = json_arena_alloc(arena, (args->n_names + 1) * sizeof *result.reasons),
    };
    if (request) {
        g_autoptr(store) copy = store_copy(store);
        if (!add_nodes(copy, arena, args, error))
            return false;
        ask_nodes(copy, arena, request, &result);
    }
    filter_result_encode(writer, &result);
    return true;
}

/* --- several ---------------------------------------------------------------------------------- */

/* Under the copy's lock: of how many of the nodes each thing keeps the pod, by its code. */
static void encode_reasons(struct json_writer *writer, struct store *copy,
                           const struct trial_pod *pod, const struct filter_args *args)
{
    int64_t reasons[REASONS_MAX] = {0}, barriers[BARRIER_N] = {0};
    struct feasibility question;

    feasibility_init(
        &question, copy,
        &(struct feasibility_about){GATE_BY_EXPLAIN, pod->view, pod->request, pod->moment});
    for (size_t i = 0; i < args->n_names; i++) {
        const struct node *node = ledger_node(store_ledger(copy), args->names[i]);
        const enum barrier barrier = node ? feasibility_barrier(&question, node) : BARRIER_NONE;
        if (barrier == BARRIER_NONE)
            reasons[feasibility_ask(&question, node, NULL)]++;
        else
            barriers[barrier]++;
    }
    feasibility_clear(&question);
    for (unsigned i = REASON_NONE + 1; i < reasons_count(); i++) {
        if (reasons[i] > 0)
            json_key_int(writer, reason_info(i)->code, reasons[i]);
    }
    for (unsigned i = BARRIER_NONE + 1; i < BARRIER_N; i++) {
        if (barriers[i] > 0)
            json_key_int(writer, barrier_code(i), barriers[i]);
    }
}

/* What has come of a pod. */
static void encode_fate(struct json_writer *writer, bool fits, const char *node, const char *why)
{
    json_key_bool(writer, "Fits", fits);
    json_key_string(writer, "Node", node);
    json_key_string(writer, "Why", why);
    json_key_object(writer, "Reasons");
}

/* Pods that are placed together. */
struct party {
    struct store *copy;
    struct json_arena *arena;
    struct dry_run_args *args;
    GHashTable *only; /* the nodes that are offered */
};

static void place(const struct party *party, size_t number, struct json_writer *writer)
{
    struct store *copy = party->copy;
    struct pod_view *view = &party->args->pods[number];
    g_autoptr(GError) failure = NULL;
    g_autoptr(request) request = read_request(party->arena, copy, view, &failure);
    g_autofree char *uid = g_strdup_printf("asked-%zu", number);
    struct moment moment;

    if (!request) {
        encode_fate(writer, !failure, NULL,
                    failure ? failure->message : "it asks for no GPU: any node will do");
        return;
    }
    view->uid = NULL;
    store_decide(copy, &moment);
    const struct trial_pod pod = {view, request, &moment, party->only};
    const struct node *home = trial_settle(copy, &pod, uid);
    encode_fate(writer, home, home ? home->name : NULL, "");
    if (!home)
        encode_reasons(writer, copy, &pod, &party->args->filter);
    store_unlock(copy);
}

static bool answer_many(struct store *store, struct json_arena *arena, struct dry_run_args *args,
                        struct json_writer *writer, GError **error)
{
    const struct filter_args *filter = &args->filter;

    if (args->n_pods * filter->n_names > WORK_MAX)
        return fail_with(
            error, GPULEDGER_ERROR_LIMIT,
            "%zu pods and %zu nodes are too many for one call: pods times nodes may be "
            "%d at most",
            args->n_pods, filter->n_names, WORK_MAX);
    g_autoptr(store) copy = store_copy(store);
    g_autoptr(GHashTable) only = g_hash_table_new(g_str_hash, g_str_equal);
    if (!add_nodes(copy, arena, filter, error))
        return false;
    for (size_t i = 0; i < filter->n_names; i++)
        g_hash_table_add(only, (gpointer)filter->names[i]);
    for (size_t i = 0; i < args->n_pods; i++) {
        if (args->pods[i].uid)
            store_delete_pod(copy, args->pods[i].uid); /* it comes anew */
    }
    const struct party party = {copy, arena, args, only};
    json_begin_object(writer);
    json_key_array(writer, "Placements");
    for (size_t i = 0; i < args->n_pods; i++) {
        json_begin_object(writer);
        json_key_string(writer, "Namespace", args->pods[i].ns);
        json_key_string(writer, "Name", args->pods[i].name);
        place(&party, i, writer);
        json_end_object(writer); /* of the reasons */
        json_end_object(writer);
    }
    json_end_array(writer);
    json_key_string(writer, "Error", "");
    json_end_object(writer);
    return true;
}

static bool answer(struct store *store, struct json_arena *arena, const char *body, size_t length,
                   struct json_writer *writer, GError **error)
{
    struct dry_run_args args;

    if (!store_check_synced(store, error) || !dry_run_args_parse(arena, body, length, &args, error))
        return false;
    return args.pods ? answer_many(store, arena, &args, writer, error)
                     : answer_one(store, arena, &args.filter, writer, error);
}

void dry_run_answer(struct store *store, const char *body, size_t length, GString *reply)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct json_writer writer;

    json_writer_init(&writer, reply);
    if (!answer(store, arena, body, length, &writer, &failure))
        filter_error_encode(&writer, failure->message);
}

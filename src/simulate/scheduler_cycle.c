/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/scheduler_cycle.h"

#include "json/json.h"

#include <gpuledger/error.h>
#include <string.h>
#include <time.h>

#define MARK_FACTOR 10 /* MaxNodeScore / MaxExtenderPriority */

struct scheduler_cycle {
    struct scheduler_cycle_options options;
    struct json_arena *arena;
    GHashTable *places; /* name -> place of a node */
    char **quoted;      /* the names as JSON */
    uint32_t *nodes;    /* that are left for the pod */
    int64_t *totals;    /* of these */
    size_t n;
    GString *body, *reply;
};

struct scheduler_cycle *scheduler_cycle_new(const struct scheduler_cycle_options *options)
{
    struct scheduler_cycle *cycle = g_new0(struct scheduler_cycle, 1);

    cycle->options = *options;
    cycle->arena = json_arena_new();
    cycle->places = g_hash_table_new(g_str_hash, g_str_equal);
    cycle->quoted = g_new0(char *, options->n_nodes + 1);
    cycle->nodes = g_new(uint32_t, options->n_nodes + 1);
    cycle->totals = g_new(int64_t, options->n_nodes + 1);
    cycle->body = g_string_new(NULL);
    cycle->reply = g_string_new(NULL);
    for (size_t i = 0; i < options->n_nodes; i++) {
        struct json_writer writer;
        json_writer_init(&writer, g_string_truncate(cycle->body, 0));
        json_string(&writer, options->nodes[i]);
        cycle->quoted[i] = g_strdup(cycle->body->str);
        g_hash_table_insert(cycle->places, (gpointer)options->nodes[i], GUINT_TO_POINTER(i));
    }
    return cycle;
}

void scheduler_cycle_free(struct scheduler_cycle *cycle)
{
    if (!cycle)
        return;
    json_arena_free(cycle->arena);
    g_hash_table_unref(cycle->places);
    g_strfreev(cycle->quoted);
    g_free(cycle->nodes);
    g_free(cycle->totals);
    g_string_free(cycle->body, TRUE);
    g_string_free(cycle->reply, TRUE);
    g_free(cycle);
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* ExtenderArgs about the nodes that are left. */
static void write_args(struct scheduler_cycle *cycle, const struct scheduler_pod *pod)
{
    struct json_writer writer;

    json_writer_init(&writer, g_string_truncate(cycle->body, 0));
    json_begin_object(&writer);
    json_key(&writer, "Pod");
    json_raw(&writer, pod->text, strlen(pod->text));
    json_key(&writer, "Nodes");
    json_null(&writer);
    json_key_array(&writer, "NodeNames");
    for (size_t i = 0; i < cycle->n; i++) {
        const char *name = cycle->quoted[cycle->nodes[i]];
        json_raw(&writer, name, strlen(name));
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

static void write_binding(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                          uint32_t node)
{
    struct json_writer writer;

    json_writer_init(&writer, g_string_truncate(cycle->body, 0));
    json_begin_object(&writer);
    json_key_string(&writer, "PodName", pod->name);
    json_key_string(&writer, "PodNamespace", pod->ns);
    json_key_string(&writer, "PodUID", pod->uid);
    json_key_string(&writer, "Node", cycle->options.nodes[node]);
    json_end_object(&writer);
}

struct verdict {
    const char *error;
};
static const struct json_field verdict_fields[] = {
    JSON_FIELD_STRING(struct verdict, error, "Error", 0),
    JSON_FIELD_END,
};

/* Whether the answer, parsed, is one without an error. */
static bool is_fine(struct scheduler_cycle *cycle, const char *verb, const cJSON *answer,
                    GError **error)
{
    struct verdict verdict = {0};

    if (!answer || !json_decode(cycle->arena, answer, verdict_fields, &verdict, error))
        return false;
    if (!verdict.error || !*verdict.error)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "%s: %s", verb, verdict.error);
    return false;
}

/* --- verbs ------------------------------------------------------------------------------------ */

/* Leaves only those nodes that the extender lets pass. */
static bool filter(struct scheduler_cycle *cycle, GError **error)
{
    struct json_strings names = {0};

    g_string_truncate(cycle->reply, 0);
    extender_filter(cycle->options.extender, cycle->body->str, cycle->body->len, cycle->reply);
    json_arena_clear(cycle->arena);
    const cJSON *answer = json_parse_strings(cycle->arena, cycle->reply->str, cycle->reply->len,
                                             "NodeNames", 0, &names, error);
    if (!is_fine(cycle, "filter", answer, error))
        return false;
    cycle->n = 0;
    for (size_t i = 0; i < names.n; i++)
        cycle->nodes[cycle->n++] =
            GPOINTER_TO_UINT(g_hash_table_lookup(cycle->places, names.values[i]));
    return true;
}

/* Adds the extender's marks to the totals: they come in the order in which the nodes were named, without
 * those that are 0. */
static bool prioritize(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                       GError **error)
{
    const int64_t weight = cycle->options.weight * MARK_FACTOR;
    const cJSON *item;
    size_t i = 0;

    g_string_truncate(cycle->reply, 0);
    if (!extender_prioritize(cycle->options.extender,
                             pod->filtered ? PRIORITIZE_ALL : PRIORITIZE_WITHOUT_GPU,
                             cycle->body->str, cycle->body->len, cycle->reply, error))
        return false;
    json_arena_clear(cycle->arena);
    const cJSON *answer =
        json_parse(cycle->arena, cycle->reply->str, cycle->reply->len, error);
    if (!answer)
        return false;
    cJSON_ArrayForEach (item, answer) {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(item, "Host");
        const cJSON *mark = cJSON_GetObjectItemCaseSensitive(item, "Score");
        while (i < cycle->n && cJSON_IsString(host) &&
               !g_str_equal(host->valuestring, cycle->options.nodes[cycle->nodes[i]]))
            i++;
        if (i == cycle->n || !cJSON_IsString(host) || !cJSON_IsNumber(mark)) {
            g_set_error(
                error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "prioritize: the answer is not about the nodes that were named, in their order");
            return false;
        }
        cycle->totals[i++] += (int64_t)mark->valuedouble * weight;
    }
    return true;
}

/* By the extender, or as kube-scheduler binds a pod that no extender binds. */
static bool bind(struct scheduler_cycle *cycle, const struct scheduler_pod *pod, uint32_t node,
                 GError **error)
{
    struct extender *extender = cycle->options.extender;

    if (!pod->filtered) {
        const struct binding binding = {
            .ns = pod->ns, .name = pod->name, .uid = pod->uid, .node = cycle->options.nodes[node]};
        return extender->cluster->ops->bind(extender->cluster, &binding, INT64_MAX, error) ==
               OUTCOME_OK;
    }
    write_binding(cycle, pod, node);
    g_string_truncate(cycle->reply, 0);
    extender_bind(extender, cycle->body->str, cycle->body->len, cycle->reply);
    json_arena_clear(cycle->arena);
    return is_fine(cycle, "bind",
                   json_parse(cycle->arena, cycle->reply->str, cycle->reply->len, error), error);
}

/* --- the cycle -------------------------------------------------------------------------------- */

static void leave_out(struct scheduler_cycle *cycle, const struct scheduler_pod *pod)
{
    size_t n = 0;

    for (size_t i = 0; i < cycle->n; i++) {
        const uint32_t node = cycle->nodes[i];
        if (node != pod->avoided && !(pod->barred && pod->barred[node]))
            cycle->nodes[n++] = node;
    }
    cycle->n = n;
}

static uint32_t pick_best(struct scheduler_cycle *cycle)
{
    uint32_t ties = 0;
    int64_t best = INT64_MIN;

    for (size_t i = 0; i < cycle->n; i++) {
        best = MAX(best, cycle->totals[i]);
    }
    for (size_t i = 0; i < cycle->n; i++) {
        if (cycle->totals[i] == best)
            cycle->nodes[ties++] = cycle->nodes[i];
    }
    return cycle->nodes[ties > 1 ? workload_pick(cycle->options.chance, ties) : 0];
}

/* CPU time: nothing here waits for anything, and other programs must not count. */
static int64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool scheduler_cycle_choose(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                            uint32_t *ret_node, int64_t *ret_ns, GError **error)
{
    cycle->n = scheduler_model_filter(cycle->options.model, pod->needs, cycle->nodes);
    leave_out(cycle, pod);
    write_args(cycle, pod);
    int64_t start_ns = clock_ns();
    if (pod->filtered && cycle->n > 0 && !filter(cycle, error))
        return false;
    *ret_ns += clock_ns() - start_ns;
    if (cycle->n == 0)
        return false;
    if (cycle->n > 1) {
        for (size_t i = 0; i < cycle->n; i++)
            cycle->totals[i] =
                scheduler_model_score(cycle->options.model, cycle->nodes[i], pod->needs);
        write_args(cycle, pod);
        start_ns = clock_ns();
        if (pod->ranked && !prioritize(cycle, pod, error))
            return false;
        *ret_ns += clock_ns() - start_ns;
    }
    *ret_node = cycle->n > 1 ? pick_best(cycle) : cycle->nodes[0];
    scheduler_model_take(cycle->options.model, *ret_node, pod->needs);
    return true;
}

bool scheduler_cycle_bind(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                          uint32_t node, int64_t *ret_ns, GError **error)
{
    const int64_t start_ns = clock_ns();
    const bool bound = bind(cycle, pod, node, error);

    *ret_ns += clock_ns() - start_ns;
    if (!bound)
        scheduler_model_give(cycle->options.model, node, pod->needs);
    return bound;
}

bool scheduler_cycle_run(struct scheduler_cycle *cycle, const struct scheduler_pod *pod,
                         uint32_t *ret_node, int64_t *ret_ns, GError **error)
{
    *ret_ns = 0;
    return scheduler_cycle_choose(cycle, pod, ret_node, ret_ns, error) &&
           scheduler_cycle_bind(cycle, pod, *ret_node, ret_ns, error);
}

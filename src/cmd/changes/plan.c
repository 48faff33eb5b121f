/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "plan": which pods to move so that a pod finds room, or a card or node is empty; and, if so
 * told, that they move (maintain/executor.h). A running extender is asked, unless the command line names a
 * cluster or they are to move.
 */
#include "base/small_file.h"
#include "client/client.h"
#include "cmd/changes/ending.h"
#include "cmd/changes/places.h"
#include "cmd/local.h"
#include "core/fail.h"
#include "explain/explain.h"
#include "maintain/executor.h"
#include "options/print.h"
#include "options/table.h"
#include "snapshot/manifest.h"

#include <stdio.h>
#include <string.h>

#define GET_POD_MS 30000

/* What the command line asks for: a pod of the cluster, one in a file, or a place to be emptied. */
struct goal {
    char *ns, *name;
    char *file;
    struct card_place place;
    struct window *window; /* when it may be carried out; NULL: always */
    char *by; /* which plan it is, if it is carried out; and the UID of a pod in a file */
};

static void goal_clear(struct goal *goal)
{
    g_free(goal->ns);
    g_free(goal->name);
    g_free(goal->file);
    g_free(goal->by);
    window_free(goal->window);
    card_place_clear(&goal->place);
}
typedef struct goal goal_cleared;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(goal_cleared, goal_clear)

static bool read_goal(const struct config *config, struct goal *goal, GError **error)
{
    const char *word = config->words->len ? config->words->pdata[0] : "";
    const char *slash = strchr(word, '/');
    const int n = (*word != '\0') + (*config->filename != '\0') + (*config->empty != '\0');

    goal->window = *config->window ? window_parse(config->window, error) : NULL;
    if (*config->window && !goal->window)
        return fail_within(error, "option '--window': ");
    if (n != 1)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "what is the goal? A pod NAMESPACE/NAME, one in a file with -f, or --empty "
            "NODE[/CARD]");
    if (*config->empty && !card_place_parse(config->empty, &goal->place, error))
        return fail_within(error, "option '--empty': ");
    if (*config->empty)
        return true;
    if (*config->filename) {
        goal->file = small_file_read(config->filename, MANIFEST_MAX, NULL, error);
        return goal->file || fail_within(error, "option '--filename': ");
    }
    if (!slash || slash == word || !slash[1] || strchr(slash + 1, '/'))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'%s': expected a pod, NAMESPACE/NAME",
                         word);
    goal->ns = g_strndup(word, (gsize)(slash - word));
    goal->name = g_strdup(slash + 1);
    return true;
}

/* The pod to admit. */
static bool read_pod(const struct local *local, const struct goal *goal, struct json_arena *arena,
                     struct pod_view *ret_pod, GError **error)
{
    struct manifest manifest;

    if (!goal->file)
        return explain_read_pod(backend_cluster(local->backend), arena, goal->ns, goal->name,
                                g_get_monotonic_time() / 1000 + GET_POD_MS, ret_pod, error);
    if (!manifest_parse(arena, goal->file, strlen(goal->file), &manifest, error))
        return fail_within(error, "option '--filename': ");
    *ret_pod = manifest.pod;
    if (goal->by && !ret_pod->uid)
        ret_pod->uid = goal->by; /* room is kept for it, which is not to be in its own way */
    return true;
}

/* Reads the cluster, and makes a plan for it. */
static struct relocation *look(const struct config *config, const struct goal *goal, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct relocation *relocation = NULL;
    struct local local;
    struct pod_view pod;

    if (!local_open(config, &local, error))
        return NULL;
    struct cluster *cluster = backend_cluster(local.backend);
    const struct relocation_query query = {
        .store = local.store,
        .cluster = cluster,
        .admit = goal->place.node ? NULL : &pod,
        .empty = goal->place.node ? &goal->place : NULL,
        .moves_max = (uint32_t)config->max_moves,
        .per_owner = (uint32_t)config->max_per_workload,
        .per_node = (uint32_t)config->max_per_node,
        .per_namespace = (uint32_t)config->max_per_namespace,
        .force = config->force,
    };
    /* Others do without PodDisruptionBudgets; here a pod must not be moved against one. */
    if (cluster->ops->list(cluster, FEED_BUDGETS, local.store, error) == OUTCOME_OK &&
        (goal->place.node || read_pod(&local, goal, arena, &pod, error)))
        relocation = relocation_find(&query, error);
    local_close(&local);
    return relocation;
}

/* --- what is shown ------------------------------------------------------------------------------ */

/* As relocation_encode has them, here or at the server. */
struct answer {
    const char *goal, *why, *node, *cards;
    bool reached, fewest;
    int64_t nodes, looked;
    const cJSON *steps, *stays;
};
static const struct json_field answer_fields[] = {
    JSON_FIELD_STRING(struct answer, goal, "goal", JSON_REQUIRED),
    JSON_FIELD_STRING(struct answer, why, "why", 0),
    JSON_FIELD_STRING(struct answer, node, "node", 0),
    JSON_FIELD_STRING(struct answer, cards, "cards", 0),
    JSON_FIELD_BOOL(struct answer, reached, "reached", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct answer, fewest, "fewest", 0),
    JSON_FIELD_INT64(struct answer, nodes, "nodes", 0),
    JSON_FIELD_INT64(struct answer, looked, "nodesLookedAt", 0),
    JSON_FIELD_ARRAY(struct answer, steps, "steps", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct answer, stays, "stays", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* A step, or who stays: what a row lacks is not there. */
struct row {
    const char *ns, *name, *from, *frees, *to, *takes, *waits, *node, *why;
    const cJSON *overlooked;
};
static const struct json_field row_fields[] = {
    JSON_FIELD_STRING(struct row, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct row, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct row, from, "from", 0),
    JSON_FIELD_STRING(struct row, frees, "frees", 0),
    JSON_FIELD_STRING(struct row, to, "to", 0),
    JSON_FIELD_STRING(struct row, takes, "takes", 0),
    JSON_FIELD_STRING(struct row, waits, "waitsFor", 0),
    JSON_FIELD_STRING(struct row, node, "node", 0),
    JSON_FIELD_STRING(struct row, why, "why", 0),
    JSON_FIELD_ARRAY(struct row, overlooked, "notLookedAt", 0),
    JSON_FIELD_END,
};

static const char *or_none(const char *text)
{
    return text ? text : "-";
}

static bool write_steps(struct json_arena *arena, const cJSON *steps, GString *text, GError **error)
{
    static const char *const headings[] = {"STEP", "POD", "FROM", "FREES", "TO", "WAITS FOR"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);
    const cJSON *item;
    unsigned n = 0;
    bool ok = true;

    cJSON_ArrayForEach (item, steps) {
        struct row row = {0};
        ok = ok && json_decode(arena, item, row_fields, &row, error);
        if (!ok)
            break;
        table_cell(table, "%u", ++n);
        table_cell(table, "%s/%s", row.ns, row.name);
        table_cell(table, "%s", or_none(row.from));
        table_cell(table, "%s", or_none(row.frees));
        table_tone(table, TONE_GOOD);
        table_cell(table, "%s, %s", or_none(row.to), or_none(row.takes));
        table_cell(table, "%s", or_none(row.waits));
    }
    if (ok)
        table_write(table, text);
    table_free(table);
    return ok;
}

static bool write_stays(struct json_arena *arena, const cJSON *stays, GString *text, GError **error)
{
    static const char *const headings[] = {"STAYS", "NODE", "WHY"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);
    const cJSON *item;
    bool ok = true;

    cJSON_ArrayForEach (item, stays) {
        struct row row = {0};
        ok = ok && json_decode(arena, item, row_fields, &row, error);
        if (!ok)
            break;
        table_cell(table, "%s/%s", row.ns, row.name);
        table_cell(table, "%s", or_none(row.node));
        table_cell(table, "%s", or_none(row.why));
    }
    g_string_append_c(text, '\n');
    if (ok)
        table_write(table, text);
    table_free(table);
    return ok;
}

static bool write_overlooked(struct json_arena *arena, const cJSON *steps, GString *text,
                             GError **error)
{
    const cJSON *item, *word;

    cJSON_ArrayForEach (item, steps) {
        struct row row = {0};
        if (!json_decode(arena, item, row_fields, &row, error))
            return false;
        if (!row.overlooked || !row.overlooked->child)
            continue;
        g_string_append_printf(text, "Not looked at of %s/%s: ", row.ns, row.name);
        cJSON_ArrayForEach (word, row.overlooked) {
            const char *what = cJSON_GetStringValue(word);
            g_string_append_printf(text, "%s%s", word == row.overlooked->child ? "" : ", ",
                                   or_none(what));
        }
        g_string_append_c(text, '\n');
    }
    return true;
}

static void write_verdict(const struct answer *plan, GString *text)
{
    const int n = cJSON_GetArraySize(plan->steps);

    g_string_append_printf(text, "%s: ", plan->goal);
    if (!plan->reached)
        g_string_append_printf(text, "%s\n", or_none(plan->why));
    else if (n == 0)
        g_string_append(text, "there is, as it is\n");
    else
        g_string_append_printf(text, "%d move%s%s\n", n, n == 1 ? "" : "s",
                               plan->fewest ? "" : " (fewer may do)");
    if (plan->looked < plan->nodes)
        g_string_append_printf(text,
                               "Looked at the pods of %" G_GINT64_FORMAT
                               " nodes of %" G_GINT64_FORMAT ", those with the most free.\n",
                               plan->looked, plan->nodes);
}

static bool write_plan(struct json_arena *arena, const struct answer *plan, GString *text,
                       GError **error)
{
    write_verdict(plan, text);
    if (plan->steps->child) {
        g_string_append_c(text, '\n');
        if (!write_steps(arena, plan->steps, text, error))
            return false;
    }
    if (plan->reached && plan->node)
        g_string_append_printf(text, "\nThe pod: %s%s%s\n", plan->node, plan->cards ? ", " : "",
                               plan->cards ? plan->cards : "");
    return write_overlooked(arena, plan->steps, text, error) &&
           (plan->reached || !plan->stays->child || write_stays(arena, plan->stays, text, error));
}

static enum exit_code print(const struct config *config, const GString *body)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    const cJSON *document = json_parse(arena, body->str, body->len, &failure);
    struct answer plan = {0};

    if (!document || !json_decode(arena, document, answer_fields, &plan, &failure) ||
        (!print_is_document(config) && !write_plan(arena, &plan, text, &failure)))
        g_prefix_error(&failure, "the answer is not understood: ");
    while (text->len > 0 && text->str[text->len - 1] == '\n')
        g_string_truncate(text, text->len - 1);
    const enum exit_code code =
        print_answer(config, print_is_document(config) ? body : text, failure);
    return code == EXIT_OK && !plan.reached ? EXIT_DIFFERENT : code;
}

static enum exit_code print_plan(const struct config *config, const struct relocation *plan,
                                 guint moved)
{
    g_autoptr(GString) body = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    relocation_encode(&writer, plan, moved);
    return print(config, body);
}

/* --- a running extender ----------------------------------------------------------------------- */

static enum exit_code ask_server(const struct config *config, const struct goal *goal)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) path = g_string_new(NULL);
    g_autofree char *title = goal->ns ? g_strdup_printf("%s/%s", goal->ns, goal->name) : NULL;

    g_string_printf(
        path, "/api/v1/plan?moves=%d&perWorkload=%d&perNode=%d&perNamespace=%d&force=%s",
        (int)config->max_moves, (int)config->max_per_workload, (int)config->max_per_node,
        (int)config->max_per_namespace, config->force ? "true" : "false");
    if (title || *config->empty) {
        g_autofree char *escaped = g_uri_escape_string(title ? title : config->empty, "/", FALSE);
        g_string_append_printf(path, "&%s=%s", title ? "pod" : "empty", escaped);
    }
    const struct client_request request = {
        .path = path->str,
        .accept = "application/json",
        .post = goal->file != NULL,
        .body = goal->file,
        .length = goal->file ? strlen(goal->file) : 0,
    };
    g_autoptr(client) client = client_open(config, &failure);
    if (client && client_get(client, &request, body, &failure))
        return print(config, body);
    complain("%s", failure->message);
    return EXIT_FAILED;
}

/* --- what is carried out ------------------------------------------------------------------------ */

struct work {
    const struct config *config;
    const struct goal *goal;
};

static void print_progress(void *data, const char *text)
{
    fprintf(stderr, "%s\n", text);
}

static struct relocation *look_again(void *data, GError **error)
{
    const struct work *work = data;

    return look(work->config, work->goal, error);
}

static void collect(const char *node, const struct plan_mark *mark, bool lives, void *data)
{
    if (!lives)
        g_ptr_array_add(data, g_strdup(node));
}

/* What plans that were killed have said of nodes means nothing any more, and goes. */
static bool clean(const struct config *config, struct api_client *client, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    struct local local;
    bool ok = true;

    if (!local_open(config, &local, error))
        return false;
    store_lock(local.store);
    store_marks_each(local.store, collect, nodes);
    store_unlock(local.store);
    local_close(&local);
    for (guint i = 0; ok && i < nodes->len; i++)
        ok = keeping_clean(client, nodes->pdata[i], error);
    return ok;
}

/* Until the goal is reached. `plan` is the first, and then the last. */
static bool apply(const struct config *config, const struct goal *goal, struct relocation **plan,
                  guint *ret_moved, GError **error)
{
    const char *const words[] = {config->empty, NULL};
    g_autoptr(api_client) client = places_client(config, error);
    struct work work = {config, goal};

    if (!client || !clean(config, client, error))
        return false;
    ending_block_signals();
    g_autoptr(keeping) keeping = keeping_new(
        &(struct keeping_options){.client = client, .by = goal->by, .tell = print_progress});
    G_GNUC_UNUSED g_autoptr(ending) ending = ending_new(keeping);
    if (goal->place.node) {
        g_autoptr(GPtrArray) changes =
            places_set(config, &(struct places_order){client, words, false}, error);
        if (!changes)
            return false;
    }
    const struct executor executor = {
        .client = client,
        .keeping = keeping,
        .budgets = {.per_owner = (uint32_t)config->max_per_workload,
                    .per_node = (uint32_t)config->max_per_node,
                    .per_namespace = (uint32_t)config->max_per_namespace,
                    .per_hour = (uint32_t)config->max_per_hour},
        .window = goal->window,
        .force = config->force,
        .timeout_ms = config->evict_timeout_ms,
        .ns = goal->ns,
        .name = goal->name,
        .look = look_again,
        .tell = print_progress,
        .data = &work,
    };
    return executor_run(&executor, plan, ret_moved, error);
}

/* No other has this name. Free with g_free. */
static char *name_plan(void)
{
    g_autofree char *random = g_uuid_string_random();

    return g_strconcat("plan-", random, NULL);
}

enum exit_code plan_command_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GError) failure = NULL;
    g_auto(goal_cleared) goal = {0};
    guint moved = 0;
    bool alone;

    if (!local_choose(config, &alone))
        return EXIT_USAGE;
    if (config->apply &&
        (config_on_command_line(config, "server") || config_on_command_line(config, "service"))) {
        complain("option '--apply': pods are evicted at the API server, and no extender is asked; "
                 "--kubeconfig names it");
        return EXIT_USAGE;
    }
    if (!read_goal(config, &goal, &failure)) {
        complain("%s", failure->message);
        return EXIT_USAGE;
    }
    if (config->apply && *config->snapshot) {
        complain("option '--apply': a saved cluster has no pods to evict");
        return EXIT_USAGE;
    }
    if (!alone && !config->apply)
        return ask_server(config, &goal);
    if (config->apply)
        goal.by = name_plan();
    g_autoptr(relocation) plan = NULL;
    if (!config->apply || places_await_nodes(config, goal.ns, goal.name, &failure))
        plan = look(config, &goal, &failure);
    if (!plan) {
        complain("%s", failure->message);
        return EXIT_FAILED;
    }
    if (config->apply && plan->reached && !apply(config, &goal, &plan, &moved, &failure)) {
        print_plan(config, plan, moved);
        complain("%s", failure->message);
        return EXIT_FAILED;
    }
    return print_plan(config, plan, moved);
}

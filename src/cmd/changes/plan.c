/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "plan": which pods to move so that a pod finds room, or a card or node is empty; and, if so
 * told, that they move (maintain/executor.h). A running extender is asked, unless the command line names a
 * cluster or they are to move.
 */
#include "client/client.h"
#include "base/printable.h"
#include "cmd/changes/applying.h"
#include "cmd/changes/places.h"
#include "cmd/local.h"
#include "options/print.h"
#include "options/table.h"
#include "options/cluster_section.h"
#include "options/maintenance_section.h"

#include <stdio.h>
#include <string.h>

/* --- what is shown ------------------------------------------------------------------------------ */

/* As relocation_encode has them, here or at the server. */
struct answer {
    const char *goal, *why, *node, *cards;
    bool reached, fewest;
    int64_t nodes, looked, fragmented, then, most;
    const cJSON *steps, *stays, *seats;
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
    JSON_FIELD_INT64(struct answer, fragmented, "fragmentedGpuThousandths.now", 0),
    JSON_FIELD_INT64(struct answer, then, "fragmentedGpuThousandths.then", 0),
    JSON_FIELD_INT64(struct answer, most, "fragmentedGpuThousandths.most", 0),
    JSON_FIELD_ARRAY(struct answer, steps, "steps", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct answer, stays, "stays", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct answer, seats, "pods", 0),
    JSON_FIELD_END,
};

/* A step, or who stays: what a row lacks is not there. */
struct row {
    const char *ns, *name, *from, *frees, *to, *takes, *waits, *node, *why, *cards;
    bool ends;
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
    JSON_FIELD_BOOL(struct row, ends, "ends", 0),
    JSON_FIELD_STRING(struct row, node, "node", 0),
    JSON_FIELD_STRING(struct row, why, "why", 0),
    JSON_FIELD_STRING(struct row, cards, "cards", 0),
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
        table_tone(table, row.ends ? TONE_CARE : TONE_GOOD);
        if (row.ends)
            table_cell(table, "nobody says where");
        else
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

/* Where the group's pods go. */
static bool write_seats(struct json_arena *arena, const cJSON *seats, GString *text, GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, seats) {
        struct row row = {0};
        if (!json_decode(arena, item, row_fields, &row, error))
            return false;
        printable_append(text, "%s%s/%s: %s, %s\n", item == seats->child ? "\n" : "", row.ns,
                         row.name, or_none(row.node), or_none(row.cards));
    }
    return true;
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
        printable_append(text, "Not looked at of %s/%s: ", row.ns, row.name);
        cJSON_ArrayForEach (word, row.overlooked) {
            const char *what = cJSON_GetStringValue(word);
            printable_append(text, "%s%s", word == row.overlooked->child ? "" : ", ",
                             or_none(what));
        }
        g_string_append_c(text, '\n');
    }
    return true;
}

static void write_verdict(const struct answer *plan, GString *text)
{
    const int n = cJSON_GetArraySize(plan->steps);
    const bool ends =
        n > 0 && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(plan->steps->child, "ends"));

    printable_append(text, "%s: ", plan->goal);
    if (!plan->reached)
        printable_append(text, "%s\n", or_none(plan->why));
    else if (n == 0)
        g_string_append(text, plan->most < 0 ? "there is, as it is\n" : "as it is\n");
    else if (ends)
        printable_append(text, "%d pod%s%s; nobody says where a successor then goes\n", n,
                         n == 1 ? " ends" : "s end", plan->fewest ? "" : " (fewer may do)");
    else
        printable_append(text, "%d move%s%s\n", n, n == 1 ? "" : "s",
                         plan->fewest ? "" : " (fewer may do)");
    if (plan->looked < plan->nodes)
        printable_append(text,
                         "Looked at the pods of %" G_GINT64_FORMAT " nodes of %" G_GINT64_FORMAT
                         ", those with the most %s.\n",
                         plan->looked, plan->nodes,
                         plan->fragmented > 0 ? "in pieces; they may go to any" : "free");
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
        printable_append(text, "\nThe pod: %s%s%s\n", plan->node, plan->cards ? ", " : "",
                         plan->cards ? plan->cards : "");
    if (plan->most >= 0)
        printable_append(text,
                         "\nIn pieces that the expected pods cannot use: %.2f GPU, then %.2f\n",
                         (double)plan->fragmented / 1000, (double)plan->then / 1000);
    return (!plan->seats || write_seats(arena, plan->seats, text, error)) &&
           write_overlooked(arena, plan->steps, text, error) &&
           (plan->reached || !plan->stays->child || write_stays(arena, plan->stays, text, error));
}

static enum exit_code print(const struct config *config, const GString *body)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    const cJSON *document = json_parse(arena, body->str, body->len, &failure);
    struct answer plan = {.most = -1};

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
                                 const struct applied *applied)
{
    g_autoptr(GString) body = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    relocation_encode(&writer, plan, applied->moved, applied->log);
    return print(config, body);
}

/* --- a running extender ----------------------------------------------------------------------- */

static enum exit_code ask_server(const struct config *config, const struct goal *goal)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) path = g_string_new(NULL);
    const char *pod = config->words->len ? config->words->pdata[0] : "";
    const char *const aims[][2] = {{"pod", pod},
                                   {"group", maintenance->group},
                                   {"empty", maintenance->empty},
                                   {"waiting", maintenance->waiting},
                                   {"defragment", maintenance->defragment}};

    g_string_printf(path,
                    "/api/v1/plan?moves=%d&perWorkload=%d&perNode=%d&perNamespace=%d&force=%s",
                    (int)maintenance->max_moves, (int)maintenance->max_per_workload,
                    (int)maintenance->max_per_node, (int)maintenance->max_per_namespace,
                    maintenance->force ? "true" : "false");
    for (size_t i = 0; i < G_N_ELEMENTS(aims); i++) {
        g_autofree char *escaped = g_uri_escape_string(aims[i][1], "/", FALSE);
        if (*escaped)
            printable_append(path, "&%s=%s", aims[i][0], escaped);
    }
    if (*maintenance->only) {
        g_autofree char *escaped = g_uri_escape_string(maintenance->only, "/,", FALSE);
        printable_append(path, "&only=%s", escaped);
    }
    if (maintenance->end)
        g_string_append(path, "&end=true");
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
    return complain_of(failure);
}

/* --- what is carried out ------------------------------------------------------------------------ */

/* No other has this name. Free with g_free. */
static char *name_plan(void)
{
    g_autofree char *random = g_uuid_string_random();

    return g_strconcat("plan-", random, NULL);
}

static enum exit_code apply(const struct config *config, struct goal *goal)
{
    g_autoptr(GError) failure = NULL;
    g_auto(applied) applied = {0};

    goal->by = name_plan();
    const bool done = places_await_nodes(config, goal->aim.ns, goal->aim.name, &failure) &&
                      applying_run(config, goal, &applied, &failure);
    const enum exit_code code =
        applied.plan ? print_plan(config, applied.plan, &applied) : EXIT_FAILED;
    if (done)
        return code;
    return complain_of(failure);
}

enum exit_code plan_command_run(const struct config *config, const struct config_inputs *inputs)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    g_autoptr(GError) failure = NULL;
    g_auto(goal_cleared) goal = {0};
    g_auto(applied) applied = {0};
    bool alone = true;

    /* With --apply the cluster is read and written here, and an extender is asked for its audit only. */
    if (!maintenance->apply && !local_choose(config, &alone))
        return EXIT_USAGE;
    if (!goal_read(config, &goal, &failure)) {
        complain("%s", failure->message);
        return EXIT_USAGE;
    }
    if (maintenance->apply && *config_section(config, cluster)->snapshot) {
        complain("option '--apply': a saved cluster has no pods to evict");
        return EXIT_USAGE;
    }
    if (!alone)
        return ask_server(config, &goal);
    if (maintenance->apply)
        return apply(config, &goal);
    g_autoptr(relocation) plan = goal_look(config, &goal, NULL, &failure);
    if (plan)
        return print_plan(config, plan, &applied);
    return complain_of(failure);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The command "migrate": what it takes to put gpuledger in another scheduler's place. It changes nothing. */
#include "cmd/local.h"
#include "base/printable.h"
#include "core/fail.h"
#include "kube/clock.h"
#include "migrate/migration.h"
#include "options/print.h"
#include "options/table.h"
#include "snapshot/snapshot_file.h"
#include "options/cluster_section.h"
#include "options/maintenance_section.h"

#include <string.h>

#define PAGE 500
#define CALL_MS 60000
#define PAGE_BYTES_MAX ((size_t)64 << 20)

/* --- the pods as they are --------------------------------------------------------------------- */

static bool visit_saved(enum feed feed, const cJSON *object, void *data, GError **error)
{
    return feed != FEED_PODS || census_add(data, object, error);
}

/* A page of the list; `token`, where the next one begins, becomes NULL with the last. */
static bool read_page(struct api_client *client, struct census *census, char **token,
                      GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *from = *token ? g_uri_escape_string(*token, NULL, FALSE) : NULL;
    g_autofree char *path = g_strdup_printf("/api/v1/pods?limit=%d%s%s", PAGE,
                                            from ? "&continue=" : "", from ? from : "");
    const struct api_call call = {.method = "GET",
                                  .path = path,
                                  .deadline_ms = clock_ms() + CALL_MS,
                                  .reply_max = PAGE_BYTES_MAX};
    const cJSON *item;

    if (api_client_call(client, &call, reply, error) != OUTCOME_OK)
        return fail_within(error, "the pods cannot be listed: ");
    const cJSON *list = json_parse(arena, reply->str, reply->len, error);
    if (!list)
        return false;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(list, "items")) {
        if (!census_add(census, item, error))
            return false;
    }
    const char *next = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(list, "metadata"), "continue"));
    g_free(*token);
    *token = next && *next ? g_strdup(next) : NULL;
    return true;
}

static bool read_pods(const struct config *config, const struct local *local, struct census *census,
                      GError **error)
{
    const struct cluster_settings *cluster = config_section(config, cluster);

    if (*cluster->snapshot)
        return snapshot_file_read(cluster->snapshot, visit_saved, census, error);
    g_autoptr(api_client) client = backend_new_client(local->backend, error);
    g_autofree char *token = NULL;
    if (!client)
        return false;
    do {
        if (!read_page(client, census, &token, error))
            return false;
    } while (token);
    return true;
}

/* --- what is shown ------------------------------------------------------------------------------ */

static void write_found(const struct migration *migration, const struct census *census,
                        GString *text)
{
    static const char *const headings[] = {"FOUND", "", ""};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);

    for (guint i = 0; i < census->schedulers->len; i++) {
        const struct census_part *part = census->schedulers->pdata[i];
        table_cell(table, "its scheduler");
        table_cell(table, "%s", part->pod);
        table_cell(table, "%s", part->owner ? part->owner : "nobody makes it again");
    }
    if (census->schedulers->len == 0) {
        table_cell(table, "its scheduler");
        table_cell(table, "none");
        table_cell(table, "no pod, container or image is called so");
    }
    table_cell(table, "its node side");
    table_cell(table, "%u pods", census->node_sides->len);
    table_cell(table, "stays");
    table_cell(table, "nodes");
    table_cell(table, "%u", migration->nodes);
    table_cell(table, "%u cards", migration->cards);
    table_cell(table, "pods");
    table_cell(table, "%u", migration->pods + migration->waiting);
    table_cell(table, "%u have a node, %u wait for one, %u of the former for the node side",
               migration->pods, migration->waiting, migration->under_way);
    if (census->peer->scheduler_name) {
        table_cell(table, "named");
        table_cell(table, "%u", census->named_placed + census->named_waiting);
        table_cell(table, "pods name the scheduler %s, %u of them wait",
                   census->peer->scheduler_name, census->named_waiting);
    }
    for (guint i = 0; i < census->kube_schedulers->len; i++) {
        const struct census_part *part = census->kube_schedulers->pdata[i];
        table_cell(table, "kube-scheduler");
        table_cell(table, "%s", part->pod);
        table_cell(table, "%s", part->owner ? part->owner : "nobody makes it again");
    }
    table_write(table, text);
    table_free(table);
}

static void write_obstacles(const struct migration *migration, GString *text)
{
    static const char *const headings[] = {"IN THE WAY", "OBJECT", "NODE", "WHY", "WHAT TO DO"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);

    for (guint i = 0; i < migration->obstacles->len; i++) {
        const struct obstacle *obstacle = &g_array_index(migration->obstacles, struct obstacle, i);
        table_cell(table, "%s", obstacle->cause);
        table_tone(table, TONE_WRONG);
        table_cell(table, "%s%s%s", obstacle->ns ? obstacle->ns : "node", obstacle->ns ? "/" : "",
                   obstacle->name ? obstacle->name : "");
        table_cell(table, "%s", obstacle->node ? obstacle->node : "-");
        table_cell(table, "%s", obstacle->why);
        table_cell(table, "%s", obstacle->advice);
    }
    if (migration->obstacles->len > 0)
        table_write(table, text);
    else
        g_string_append(text, "Nothing stands in the way.\n");
    if (migration->n_obstacles > migration->obstacles->len)
        printable_append(text, "%u more are not shown.\n",
                         migration->n_obstacles - migration->obstacles->len);
    table_free(table);
}

static void write_steps(const char *title, const GPtrArray *steps, GString *text)
{
    printable_append(text, "\n%s\n", title);
    for (guint i = 0; i < steps->len; i++) {
        const struct migration_step *step = steps->pdata[i];
        printable_append(text, "%2u. %s\n", i + 1, step->what);
        g_auto(GStrv) lines = g_strsplit(step->command ? step->command : "", "\n", -1);
        for (char **line = lines; *line; line++)
            printable_append(text, "      %s\n", *line);
    }
}

static void write_text(const struct migration *migration, const struct census *census,
                       GString *text)
{
    printable_append(text, "From %s to gpuledger. Nothing has been changed.\n\n",
                     migration->peer->title);
    write_found(migration, census, text);
    g_string_append_c(text, '\n');
    write_obstacles(migration, text);
    g_string_append(text, "\nWHAT CHANGES\n");
    for (const char *const *change = migration->peer->changes; *change; change++)
        printable_append(text, "  - %s\n", *change);
    write_steps("STEPS", migration->steps, text);
    write_steps("THE WAY BACK", migration->back, text);
}

/* --- the command ------------------------------------------------------------------------------ */

static bool look(const struct config *config, GString *text, guint *ret_obstacles, GError **error)
{
    const struct store_options options = backend_store_options(config);
    g_autoptr(census) census =
        census_new(&peers[config_section(config, maintenance)->from], &options.dialects);
    struct json_writer writer;
    struct local local;

    if (!local_open(config, &local, error))
        return false;
    const bool ok = read_pods(config, &local, census, error);
    g_autoptr(migration) migration = ok ? migration_plan(local.store, census) : NULL;
    local_close(&local);
    if (!migration)
        return false;
    *ret_obstacles = migration->n_obstacles;
    if (print_is_document(config)) {
        json_writer_init(&writer, text);
        migration_encode(&writer, migration, census);
    } else {
        write_text(migration, census, text);
    }
    return true;
}

enum exit_code migrate_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    guint obstacles = 0;

    if (!config_on_command_line(config, "from")) {
        complain(
            "from which scheduler? --from takes its name; 'gpuledger migrate --help' lists them");
        return EXIT_USAGE;
    }
    look(config, text, &obstacles, &failure);
    const enum exit_code code = print_answer(config, text, failure);
    return code == EXIT_OK && obstacles > 0 ? EXIT_DIFFERENT : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/views/listing.h"

#include "cmd/local.h"
#include "core/fail.h"
#include "inspect/views.h"
#include "json/json.h"
#include "options/jsonpath.h"
#include "options/print.h"
#include "options/client_section.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCREEN_CLEAR "\033[H\033[2J" /* ECMA-48: CUP, ED */
#define WATCH_PAUSE_US (2 * G_USEC_PER_SEC)

/* --- asking --------------------------------------------------------------------------------- */

/* What the server answers under /api/v1/nodes, of the cluster that the command line names. */
static bool look_at_cluster(const struct config *config, const struct node_query *query,
                            GString *ret_body, GError **error)
{
    const char *name = query->node;
    struct local local;
    bool found = true;

    if (!local_open(config, &local, error))
        return false;
    if (query->listing && query->listing->view)
        query->listing->view(local.store, config, ret_body);
    else
        found = (query->table ? view_nodes_table : view_nodes)(local.store, name, ret_body);
    if (!found)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND, "node '%s' is not known",
                    name);
    local_close(&local);
    return found;
}

bool node_query_ask(const struct config *config, const struct node_query *query, GString *ret_body,
                    GError **error)
{
    const char *name = query->node;

    if (!query->client)
        return look_at_cluster(config, query, ret_body, error);
    g_autofree char *escaped = name ? g_uri_escape_string(name, NULL, FALSE) : NULL;
    const char *place =
        query->listing && query->listing->path ? query->listing->path : "/api/v1/nodes";
    g_autofree char *path = g_strconcat(place, name ? "/" : "", name ? escaped : "", NULL);
    const struct client_request request = {path, query->table ? "text/plain" : "application/json"};
    return client_get(query->client, &request, ret_body, error);
}

/* --- printing ------------------------------------------------------------------------------- */

/* What has been printed, so that --watch prints what is new. */
struct printed {
    GHashTable *rows;
    GString *text; /* of a document */
    bool unsorted; /* there is no such column */
};

static bool write_names(const char *names, const GString *document, GString *text, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *tree = json_parse(arena, document->str, document->len, error);

    return tree && jsonpath_write(names, tree, text, error);
}

static bool write_rows(const struct config *config, const struct listing *listing,
                       const GString *body, struct printed *printed, GString *text, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    struct table *table = listing->make_rows(config, body, error);
    if (!table)
        return fail_within(error, "the answer is not understood: ");
    printed->unsorted =
        *client_options->sort_by && !table_sort(table, client_options->sort_by, error);
    const bool ok = !printed->unsorted &&
                    (!listing->write_summary || listing->write_summary(config, body, text, error));

    if (ok && client_options->watch && !listing->write_summary)
        table_write_new(table, printed->rows, text);
    else if (ok)
        table_write(table, text);
    table_free(table);
    return ok;
}

static bool write_document(const struct config *config, const struct listing *listing,
                           const GString *body, struct printed *printed, GString *text,
                           GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    g_autoptr(GString) document = g_string_new(NULL);

    if (!listing->make_document)
        g_string_append_len(document, body->str, (gssize)body->len);
    else if (!listing->make_document(config, body, document, error))
        return fail_within(error, "the answer is not understood: ");
    if (client_options->watch && g_string_equal(document, printed->text))
        return true;
    g_string_assign(printed->text, document->str);
    if (client_options->output == OUTPUT_NAME)
        return write_names(listing->names, document, text, error);
    g_string_append_len(text, document->str, (gssize)document->len);
    return true;
}

static enum exit_code show(const struct config *config, const struct node_query *query,
                           const struct listing *listing, struct printed *printed)
{
    const struct client_settings *client_options = config_section(config, client);
    const bool rows = !print_is_document(config) && client_options->output != OUTPUT_NAME;
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;

    if (node_query_ask(config, query, body, &failure))
        (rows ? write_rows : write_document)(config, listing, body, printed, text, &failure);
    if (!failure && text->len == 0)
        return EXIT_OK; /* --watch, and nothing new */
    if (rows && client_options->watch && listing->write_summary && isatty(STDOUT_FILENO))
        fputs(SCREEN_CLEAR, stdout);
    const enum exit_code code = print_answer(config, text, failure);
    fflush(stdout);
    return printed->unsorted ? EXIT_USAGE : code;
}

static bool fits(const struct config *config)
{
    const struct client_settings *client_options = config_section(config, client);

    if (!*client_options->sort_by || client_options->output == OUTPUT_TABLE ||
        client_options->output == OUTPUT_WIDE)
        return true;
    complain("option '--sort-by': it sorts the rows of a table, and --output asks for none");
    return false;
}

enum exit_code listing_run(const struct config *config, const char *node,
                           const struct listing *listing)
{
    struct node_query query = {.node = node, .listing = listing};
    g_autoptr(GHashTable) rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    struct printed printed = {rows, text, false};
    g_autoptr(GError) failure = NULL;
    enum exit_code code;
    bool local;

    if (!fits(config) || !local_choose(config, &local))
        return EXIT_USAGE;
    g_autoptr(client) client = local ? NULL : client_open(config, &failure);
    if (failure)
        return print_answer(config, text, failure);
    query.client = client;
    while ((code = show(config, &query, listing, &printed)) == EXIT_OK &&
           config_section(config, client)->watch)
        g_usleep(WATCH_PAUSE_US);
    return code;
}

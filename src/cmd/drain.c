/* SPDX-License-Identifier: Apache-2.0 */
/* The command "drain": where the pods of a node or a card would go, and, if so told, that they go. */
#include "maintain/drain.h"
#include "cmd/cordon.h"
#include "cmd/local.h"
#include "core/fail.h"
#include "explain/fit.h"
#include "options/print.h"
#include "options/table.h"

#include <stdio.h>

static struct fit *look(const struct config *config, GError **error)
{
    g_autoptr(GPtrArray) places = g_ptr_array_new();
    struct local local;

    for (guint i = 0; i < config->words->len; i++)
        g_ptr_array_add(places, config->words->pdata[i]);
    g_ptr_array_add(places, NULL);
    if (!local_open(config, &local, error))
        return NULL;
    struct fit *fit = fit_find(
        &(struct fit_query){
            .store = local.store,
            .cluster = backend_cluster(local.backend),
            .drain = (const char *const *)places->pdata,
        },
        error);
    local_close(&local);
    return fit;
}

/* Where each goes, and what became of it: `pods` NULL: nothing was done. */
static void write_table(const struct fit *fit, const struct drain_pod *pods, GString *text)
{
    static const char *const headings[] = {"POD", "NODE", "FITS ON", "STATE"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);

    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        const char *why = pods && pods[i].why ? pods[i].why : move->to ? NULL : move->why;
        table_cell(table, "%s/%s", move->ns, move->name);
        table_cell(table, "%s", move->from);
        table_cell(table, "%s", move->to ? move->to : "nowhere");
        table_cell(table, "%s%s%s", pods ? drain_states[pods[i].state] : "there", why ? ": " : "",
                   why ? why : "");
    }
    table_write(table, text);
    table_free(table);
}

static void encode(const struct fit *fit, const struct drain_pod *pods, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_bool(&writer, "applied", pods != NULL);
    json_key_int(&writer, "nowhere", fit->stranded);
    json_key_array(&writer, "pods");
    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        json_begin_object(&writer);
        json_key_string(&writer, "namespace", move->ns);
        json_key_string(&writer, "name", move->name);
        json_key_string(&writer, "node", move->from);
        json_key_string(&writer, "fitsOn", move->to);
        json_key_string(&writer, "state", pods ? drain_states[pods[i].state] : "there");
        json_key_string(&writer, "why", pods && pods[i].why ? pods[i].why : move->why);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

static void print_progress(void *data, const char *text)
{
    fprintf(stderr, "%s\n", text);
}

static bool apply(const struct config *config, const struct fit *fit, struct drain_pod *pods,
                  GError **error)
{
    g_autoptr(api_client) client = NULL;
    g_autoptr(GPtrArray) changes = NULL;

    if (fit->stranded > 0 && !config->force)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "%" G_GINT64_FORMAT
                         " of %u pods fit nowhere else; --force evicts them all "
                         "the same",
                         fit->stranded, fit->moves->len);
    client = cordon_open_client(config, error);
    if (client)
        changes = cordon_places(config, &(struct cordon_order){client, false}, error);
    if (!changes)
        return false;
    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        pods[i] = (struct drain_pod){.ns = move->ns, .name = move->name};
    }
    return drain_run(
        &(struct drain_query){
            .client = client,
            .pods = pods,
            .n_pods = fit->moves->len,
            .force = config->force,
            .timeout_ms = config->evict_timeout_ms,
            .progress = print_progress,
        },
        error);
}

static bool is_left(const struct drain_pod *pods, guint n)
{
    for (guint i = 0; i < n; i++) {
        if (pods[i].state == DRAIN_STAYS)
            return true;
    }
    return false;
}

static enum exit_code print(const struct config *config, const struct fit *fit,
                            const struct drain_pod *pods)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (print_is_document(config))
        encode(fit, pods, text);
    else if (fit->moves->len == 0)
        g_string_append(text, "no pod there holds a GPU");
    else
        write_table(fit, pods, text);
    return print_answer(config, text, NULL);
}

enum exit_code drain_command_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GError) failure = NULL;

    if (config->words->len == 0) {
        complain("which node or card? " PROGRAM " drain NODE[/CARD]");
        return EXIT_USAGE;
    }
    if (config->apply && *config->snapshot) {
        complain("option '--apply': a saved cluster has no pods to evict");
        return EXIT_USAGE;
    }
    g_autoptr(fit) fit = look(config, &failure);
    if (!fit) {
        complain("%s", failure->message);
        return EXIT_FAILED;
    }
    if (!config->apply) {
        const enum exit_code code = print(config, fit, NULL);
        return code == EXIT_OK && fit->stranded > 0 ? EXIT_DIFFERENT : code;
    }
    g_autofree struct drain_pod *pods = g_new0(struct drain_pod, fit->moves->len + 1);
    apply(config, fit, pods, &failure);
    const enum exit_code code = print(config, fit, failure && !pods[0].ns ? NULL : pods);
    if (failure)
        complain("%s", failure->message);
    const bool left = is_left(pods, fit->moves->len);
    for (guint i = 0; i < fit->moves->len; i++)
        g_free(pods[i].why);
    return failure ? EXIT_FAILED : code == EXIT_OK && left ? EXIT_DIFFERENT : code;
}

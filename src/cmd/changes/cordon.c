/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands "cordon" and "uncordon": cards and nodes out of service for new pods, and back; and
 * "drain": where their pods would go, and, if so told, that they go.
 */
#include "cmd/changes/places.h"
#include "cmd/local.h"
#include "core/fail.h"
#include "explain/fit.h"
#include "maintain/card_service.h"
#include "evict/drain.h"
#include "maintain/keeping.h"
#include "options/command.h"
#include "options/print.h"
#include "options/table.h"
#include "options/cluster_section.h"
#include "options/maintenance_section.h"

#include <stdio.h>

static const char *shown(const char *value)
{
    return value && *value ? value : "-";
}

static void write_changes(const GPtrArray *changes, GString *text)
{
    static const char *const headings[] = {"OBJECT", "FIELD", "WAS", "IS"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);

    for (guint i = 0; i < changes->len; i++) {
        const struct service_change *change = changes->pdata[i];
        table_cell(table, "%s", change->object);
        table_cell(table, "%s", change->field);
        table_cell(table, "%s", shown(change->from));
        table_cell(table, "%s", shown(change->to));
    }
    table_write(table, text);
    table_free(table);
}

static void encode_changes(const GPtrArray *changes, bool dry_run, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_bool(&writer, "dryRun", dry_run);
    json_key_array(&writer, "changes");
    for (guint i = 0; i < changes->len; i++) {
        const struct service_change *change = changes->pdata[i];
        json_begin_object(&writer);
        json_key_string(&writer, "object", change->object);
        json_key_string(&writer, "field", change->field);
        json_key_string(&writer, "from", change->from);
        json_key_string(&writer, "to", change->to);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

/* The words of the command line; ends with NULL. */
static GPtrArray *list_words(const struct config *config)
{
    GPtrArray *words = g_ptr_array_new();

    for (guint i = 0; i < config->words->len; i++)
        g_ptr_array_add(words, config->words->pdata[i]);
    g_ptr_array_add(words, NULL);
    return words;
}

/* What a plan that was killed has left on the nodes. */
static bool clean_nodes(const struct config *config, struct api_client *client, GError **error)
{
    bool ok = true;

    for (guint i = 0; ok && i < config->words->len; i++) {
        g_auto(card_place) place = {0};
        ok = card_place_parse(config->words->pdata[i], &place, error) &&
             keeping_clean(client, place.node, error);
    }
    return ok;
}

static bool set_places(const struct config *config, struct api_client *client, bool open,
                       GPtrArray *changes, GError **error)
{
    g_autoptr(GPtrArray) words = list_words(config);
    const struct places_order order = {client, (const char *const *)words->pdata, open};

    return places_set(config, &order, changes, error);
}

static enum exit_code run(const struct config *config, bool open)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    g_autoptr(GError) failure = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GPtrArray) changes = places_changes_new();

    if (config->words->len == 0) {
        complain("which node or card? " PROGRAM " %s NODE[/CARD]", open ? "uncordon" : "cordon");
        return EXIT_USAGE;
    }
    g_autoptr(api_client) client = places_client(config, &failure);
    const bool ok = client &&
                    (!open || maintenance->dry_run || clean_nodes(config, client, &failure)) &&
                    set_places(config, client, open, changes, &failure);
    if (!ok && changes->len == 0)
        return print_answer(config, text, failure);
    if (print_is_document(config))
        encode_changes(changes, maintenance->dry_run, text);
    else if (changes->len > 0)
        write_changes(changes, text);
    else
        g_string_printf(text, "it is so already: nothing was written");
    const enum exit_code code = print_answer(config, text, NULL);
    if (ok)
        return code;
    return complain_of(failure); /* what was done before is done, and was told */
}

enum exit_code cordon_run(const struct config *config, const struct config_inputs *inputs)
{
    return run(config, false);
}

enum exit_code uncordon_run(const struct config *config, const struct config_inputs *inputs)
{
    return run(config, true);
}

/* --- drain -------------------------------------------------------------------------------------- */

static struct fit *look(const struct config *config, GError **error)
{
    g_autoptr(GPtrArray) places = list_words(config);
    struct local local;

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
static void write_moves(const struct fit *fit, const struct drain_pod *pods, GString *text)
{
    static const char *const headings[] = {"POD", "NODE", "FITS ON", "STATE"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);

    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        const char *why = pods && pods[i].why ? pods[i].why : move->to ? NULL : move->why;
        table_cell(table, "%s/%s", move->ns, move->name);
        table_cell(table, "%s", move->from);
        table_cell(table, "%s", move->to ? move->to : "nowhere");
        table_tone(table, move->to ? TONE_PLAIN : TONE_WRONG);
        table_cell(table, "%s%s%s", pods ? drain_states[pods[i].state] : "there", why ? ": " : "",
                   why ? why : "");
    }
    table_write(table, text);
    table_free(table);
}

static void encode_moves(const struct fit *fit, const struct drain_pod *pods, GString *text)
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
    say("%s", text);
}

static bool apply(const struct config *config, const struct fit *fit, struct drain_pod *pods,
                  GError **error)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    g_autoptr(api_client) client = NULL;
    g_autoptr(GPtrArray) changes = places_changes_new();

    if (fit->stranded > 0 && !maintenance->force)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "%" G_GINT64_FORMAT
                         " of %u pods fit nowhere else; --force evicts them all "
                         "the same",
                         fit->stranded, fit->moves->len);
    client = places_client(config, error);
    if (!client || !set_places(config, client, false, changes, error))
        return false;
    for (guint i = 0; i < fit->moves->len; i++) {
        const struct fit_move *move = &g_array_index(fit->moves, struct fit_move, i);
        pods[i] =
            (struct drain_pod){.ns = move->ns,
                               .name = move->name,
                               .uid = move->uid,
                               .note = "gpuledger drain takes its card or node out of service"};
    }
    return drain_run(
        &(struct drain_query){
            .ender = ENDER_DRAIN,
            .client = client,
            .pods = pods,
            .n_pods = fit->moves->len,
            .force = maintenance->force,
            .timeout_ms = maintenance->evict_timeout_ms,
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
        encode_moves(fit, pods, text);
    else if (fit->moves->len == 0)
        g_string_append(text, "no pod there holds a GPU");
    else
        write_moves(fit, pods, text);
    return print_answer(config, text, NULL);
}

enum exit_code drain_command_run(const struct config *config, const struct config_inputs *inputs)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    g_autoptr(GError) failure = NULL;

    if (config->words->len == 0) {
        complain("which node or card? " PROGRAM " drain NODE[/CARD]");
        return EXIT_USAGE;
    }
    if (maintenance->apply && *config_section(config, cluster)->snapshot) {
        complain("option '--apply': a saved cluster has no pods to evict");
        return EXIT_USAGE;
    }
    g_autoptr(fit) fit = NULL;
    if (!maintenance->apply || places_await_nodes(config, NULL, NULL, &failure))
        fit = look(config, &failure);
    if (!fit)
        return complain_of(failure);
    if (!maintenance->apply) {
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

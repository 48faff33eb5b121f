/* SPDX-License-Identifier: Apache-2.0 */
/* The commands "cordon" and "uncordon": cards and nodes out of service for new pods, and back. */
#include "maintain/card_service.h"
#include "cmd/cordon.h"
#include "core/fail.h"
#include "options/print.h"
#include "options/table.h"

#include <signal.h>

static const char *shown(const char *value)
{
    return value && *value ? value : "-";
}

static void write_table(const GPtrArray *changes, GString *text)
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

static void encode(const GPtrArray *changes, bool dry_run, GString *text)
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

struct api_client *cordon_open_client(const struct config *config, GError **error)
{
    struct kube_config *kube = kube_config_load_default(config->kubeconfig, config->context, error);

    signal(SIGPIPE, SIG_IGN);
    return kube ? api_client_new(kube, error) : NULL;
}

GPtrArray *cordon_places(const struct config *config, const struct cordon_order *order,
                         GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(service_change_free);

    for (guint i = 0; i < config->words->len; i++) {
        g_auto(card_place) place = {0};
        const struct service_query query = {order->client, &place, &config->dialects, order->open,
                                            config->dry_run};
        if (!card_place_parse(config->words->pdata[i], &place, error))
            return NULL;
        GPtrArray *changes = card_service_set(&query, error);
        if (!changes)
            return NULL;
        g_ptr_array_extend_and_steal(all, changes);
    }
    return g_steal_pointer(&all);
}

static enum exit_code run(const struct config *config, bool open)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GPtrArray) changes = NULL;

    if (config->words->len == 0) {
        complain("which node or card? " PROGRAM " %s NODE[/CARD]", open ? "uncordon" : "cordon");
        return EXIT_USAGE;
    }
    g_autoptr(api_client) client = cordon_open_client(config, &failure);
    if (client)
        changes = cordon_places(config, &(struct cordon_order){client, open}, &failure);
    if (!changes)
        return print_answer(config, text, failure);
    if (print_is_document(config))
        encode(changes, config->dry_run, text);
    else if (changes->len > 0)
        write_table(changes, text);
    else
        g_string_printf(text, "it is so already: nothing was written");
    return print_answer(config, text, NULL);
}

enum exit_code cordon_run(const struct config *config, const struct config_inputs *inputs)
{
    return run(config, false);
}

enum exit_code uncordon_run(const struct config *config, const struct config_inputs *inputs)
{
    return run(config, true);
}

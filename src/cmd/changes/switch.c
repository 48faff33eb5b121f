/* SPDX-License-Identifier: Apache-2.0 */
/* The command "switch": which nodes share their cards in another way, when, and how far that is; and, if so
 * told, that one does now. */
#include "cmd/changes/places.h"
#include "core/fail.h"
#include "kube/api_cluster.h"
#include "kube/clock.h"
#include "options/print.h"
#include "options/table.h"
#include "switch/switcher.h"

#include <stdio.h>
#include <string.h>

#define LOOK_US (2 * G_TIME_SPAN_SECOND)
#define NODES_MAX ((size_t)256 << 20)

struct switching {
    struct api_client *client;
    struct cluster *cluster;
    struct calendar *calendar;
    struct node_switch with;
};

static void switching_close(struct switching *switching)
{
    if (switching->cluster)
        api_cluster_free(switching->cluster);
    g_clear_pointer(&switching->client, api_client_free);
    calendar_free(switching->calendar);
}

static bool switching_open(const struct config *config, struct switching *ret_switching,
                           GError **error)
{
    struct switching *switching = ret_switching;
    const char *replicas = config->dialects.nvidia_config_replicas;

    *switching = (struct switching){.client = places_client(config, error)};
    if (!switching->client)
        return false;
    switching->cluster = api_cluster_new(switching->client);
    if (*config->calendar) {
        switching->calendar = calendar_load(config->calendar, replicas, error);
        if (!switching->calendar)
            return fail_within(error, "option '--calendar': ");
    }
    switching->with = (struct node_switch){
        .client = switching->client,
        .cluster = switching->cluster,
        .calendar = switching->calendar,
        .replicas = replicas,
        .limits =
            switching->calendar ? *calendar_limits(switching->calendar) : switch_limits_default,
        .dialects = &config->dialects,
    };
    return true;
}

/* --- looking -------------------------------------------------------------------------------------- */

static const char *shown(const char *text)
{
    return text ? text : "-";
}

static bool add_row(const struct switching *switching, const char *node,
                    const struct switch_mark *wanted, struct table *table, GError **error)
{
    struct node_switch with = switching->with;
    struct node_look look;

    with.dry_run = true;
    if (node_switch_look(&with, node, wanted, &look, error) != OUTCOME_OK) {
        node_look_clear(&look);
        return false;
    }
    table_cell(table, "%s", node);
    table_cell(table, "%s", shown(look.label));
    table_cell(table, "%s", shown(look.is));
    table_cell(table, "%s", shown(look.mark));
    table_cell(table, "%s", switch_phases[look.phase]);
    table_tone(table, look.stuck ? TONE_WRONG : TONE_PLAIN);
    table_cell(table, "%u", look.n_holders);
    table_cell(table, "%s", look.event != SWITCH_EVENT_NONE ? switch_events[look.event] : "-");
    table_cell(table, "%s", shown(look.waits));
    node_look_clear(&look);
    return true;
}

static struct table *new_table(void)
{
    static const char *const headings[] = {"NODE",  "LABEL", "IS",   "ANNOUNCED",
                                           "PHASE", "PODS",  "NEXT", "WAITS FOR"};

    return table_new(G_N_ELEMENTS(headings), headings);
}

struct list {
    const cJSON *items;
};
static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct list, items, "items", 0),
    JSON_FIELD_END,
};

static bool concerns(const struct switching *switching, const struct node_view *view)
{
    struct calendar_answer answer;

    return string_pairs_get(&view->annotations, SWITCH_KEY) ||
           string_pairs_get(&view->annotations, SWITCH_STATE_KEY) ||
           (switching->calendar && calendar_ask(switching->calendar, &view->labels,
                                                g_get_real_time() / G_USEC_PER_SEC, &answer));
}

static bool add_all(const struct switching *switching, struct table *table, guint *n,
                    GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {.method = "GET",
                                  .path = "/api/v1/nodes",
                                  .deadline_ms = clock_ms() + 60000,
                                  .reply_max = NODES_MAX};
    struct list list = {0};
    const cJSON *item;

    if (api_client_call(switching->client, &call, reply, error) != OUTCOME_OK)
        return false;
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    if (!object || !json_decode(arena, object, list_fields, &list, error))
        return false;
    cJSON_ArrayForEach (item, list.items) {
        struct node_view view;
        if (!node_view_decode(arena, item, &view, NULL) || !concerns(switching, &view))
            continue;
        (*n)++;
        if (!add_row(switching, view.name, NULL, table, error))
            return false;
    }
    return true;
}

static enum exit_code show(const struct config *config, const struct switching *switching,
                           const struct switch_mark *wanted)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct table *table = new_table();
    guint n = 0;

    if (config->words->len == 0) {
        if (add_all(switching, table, &n, &failure) && n == 0)
            g_string_append(text, "no node is to be switched");
    } else {
        n = 1;
        add_row(switching, config->words->pdata[0], wanted, table, &failure);
    }
    if (!failure && n > 0)
        table_write(table, text);
    table_free(table);
    return print_answer(config, text, failure);
}

/* --- doing ---------------------------------------------------------------------------------------- */

static void tell(const char *node, const struct node_look *look, char **said)
{
    g_autofree char *text =
        look->event != SWITCH_EVENT_NONE
            ? g_strdup_printf("%s: %s", node, switch_events[look->event])
            : g_strdup_printf("%s: %s: %s", node, switch_phases[look->phase], shown(look->waits));

    if (g_strcmp0(text, *said) != 0)
        fprintf(stderr, "%s\n", text);
    g_free(*said);
    *said = g_steal_pointer(&text);
}

/* Until it is over, one way or another. */
static enum exit_code carry_out(const struct switching *switching, const char *node,
                                const struct switch_mark *wanted)
{
    g_autofree char *said = NULL;
    bool begun = false;

    for (;;) {
        g_autoptr(GError) failure = NULL;
        struct node_look look;
        const enum outcome outcome =
            node_switch_look(&switching->with, node, begun ? NULL : wanted, &look, &failure);
        if (outcome == OUTCOME_OK)
            tell(node, &look, &said);
        begun |= outcome == OUTCOME_OK;
        const enum switch_event event = look.event;
        const bool over = look.stuck && look.event == SWITCH_EVENT_NONE;
        const bool gone =
            begun && look.phase == SWITCH_NONE && !look.mark && event != SWITCH_EVENT_ANNOUNCED;
        node_look_clear(&look);
        if (outcome == OUTCOME_NOT_FOUND || outcome == OUTCOME_REFUSED) {
            complain("%s", failure->message);
            return EXIT_FAILED;
        }
        if (outcome == OUTCOME_OK && (event == SWITCH_EVENT_DONE || gone))
            return EXIT_OK; /* or whoever else switches has done it */
        if (outcome == OUTCOME_OK && (event == SWITCH_EVENT_GIVEN_UP || over))
            return EXIT_FAILED;
        g_usleep(LOOK_US);
    }
}

/* "mig.config=all-1g.5gb", now. */
static bool read_target(const struct switching *switching, const char *text,
                        struct switch_mark *ret_mark, GError **error)
{
    const char *sign = strchr(text, '=');
    g_autofree char *name = sign ? g_strndup(text, (gsize)(sign - text)) : NULL;
    const struct node_mode *mode = name ? nvidia_mode_find(name) : NULL;
    g_autofree char *now = switch_time_format(g_get_real_time() / G_USEC_PER_SEC);
    g_autofree char *mark = mode ? g_strdup_printf("%s%s@%s", mode->label, sign, now) : NULL;
    struct mode_value value;

    if (!mark || !switch_mark_parse(mark, ret_mark))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is not like 'device-plugin.config=VALUE' or 'mig.config=VALUE'",
                         text);
    return calendar_value(switching->calendar, mode, ret_mark->value, switching->with.replicas,
                          &value) ||
           fail_with(error, GPULEDGER_ERROR_INVALID, "what '%s' makes of cards is not known: %s",
                     ret_mark->value,
                     mode->recuts ? "name it in the layouts of --calendar"
                                  : "name it in --nvidia-config-replicas");
}

static enum exit_code run(const struct config *config, const struct switching *switching)
{
    g_autoptr(GError) failure = NULL;
    struct switch_mark wanted;

    if (config->words->len < 2) {
        if (!config->apply)
            return show(config, switching, NULL);
        complain("option '--apply': to what? " PROGRAM " switch NODE LABEL=VALUE");
        return EXIT_USAGE;
    }
    if (!read_target(switching, config->words->pdata[1], &wanted, &failure)) {
        complain("%s", failure->message);
        return EXIT_USAGE;
    }
    return config->apply ? carry_out(switching, config->words->pdata[0], &wanted)
                         : show(config, switching, &wanted);
}

enum exit_code switch_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GError) failure = NULL;
    struct switching switching;
    enum exit_code code = EXIT_FAILED;

    if (switching_open(config, &switching, &failure))
        code = run(config, &switching);
    else
        complain("%s", failure->message);
    switching_close(&switching);
    return code;
}

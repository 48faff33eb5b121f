/* SPDX-License-Identifier: Apache-2.0 */
/* The command "switch": which nodes share their cards in another way, when, and how far that is; and, if so
 * told, that one does now. */
#include "cmd/changes/places.h"
#include "cmd/changes/switch_layouts.h"
#include "core/fail.h"
#include "dialect/marks/node_marks.h"
#include "json/json.h"
#include "kube/api_cluster.h"
#include "kube/clock.h"
#include "kube/yaml_document.h"
#include "options/command.h"
#include "options/print.h"
#include "options/table.h"
#include "switch/switcher.h"
#include "dialect/dialects_section.h"
#include "switch/switch_section.h"
#include "options/maintenance_section.h"

#include <stdio.h>
#include <string.h>

#define LOOK_US (2 * G_TIME_SPAN_SECOND)
#define AUTO "auto" /* as a value: which layout is to be found out */
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
    const struct dialects_settings *dialects = config_section(config, dialects);
    const struct switch_settings *switch_options = config_section(config, switch);
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    struct switching *switching = ret_switching;
    const char *replicas = dialects->options.nvidia_config_replicas;

    *switching = (struct switching){.client = places_client(config, error)};
    if (!switching->client)
        return false;
    switching->cluster = api_cluster_new(switching->client);
    if (*switch_options->calendar) {
        switching->calendar = calendar_load(switch_options->calendar, replicas, error);
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
        .dialects = &dialects->options,
        .moves_ns = maintenance->moves_namespace,
    };
    if (maintenance->max_per_hour > 0)
        switching->with.limits.max_per_hour = (uint32_t)maintenance->max_per_hour;
    if (maintenance->max_per_namespace > 0)
        switching->with.limits.max_per_namespace = (uint32_t)maintenance->max_per_namespace;
    return true;
}

/* --- looking -------------------------------------------------------------------------------------- */

/* One node. */
struct row {
    char *node;
    struct node_look look;
};

static void row_clear(gpointer data)
{
    struct row *row = data;

    g_free(row->node);
    node_look_clear(&row->look);
}

static GArray *new_rows(void)
{
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(struct row));

    g_array_set_clear_func(rows, row_clear);
    return rows;
}

static bool add_row(const struct switching *switching, const char *node,
                    const struct switch_mark *wanted, GArray *rows, GError **error)
{
    struct node_switch with = switching->with;
    struct row row = {g_strdup(node), {0}};

    with.dry_run = true;
    const bool ok = node_switch_look(&with, node, wanted, &row.look, error) == OUTCOME_OK;
    g_array_append_val(rows, row); /* which frees it */
    return ok;
}

static const char *shown(const char *text)
{
    return text ? text : "-";
}

static void write_table(const GArray *rows, GString *text)
{
    static const char *const headings[] = {"NODE",  "LABEL", "IS",   "ANNOUNCED",
                                           "PHASE", "PODS",  "NEXT", "WAITS FOR"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);

    for (guint i = 0; i < rows->len; i++) {
        const struct row *row = &g_array_index(rows, struct row, i);
        const struct node_look *look = &row->look;
        table_cell(table, "%s", row->node);
        table_cell(table, "%s", shown(look->label));
        table_cell(table, "%s", shown(look->is));
        table_cell(table, "%s", shown(look->mark));
        table_cell(table, "%s", switch_phases[look->phase]);
        table_tone(table, look->stuck ? TONE_WRONG : TONE_PLAIN);
        table_cell(table, "%u", look->n_holders);
        table_cell(table, "%s",
                   look->event != SWITCH_EVENT_NONE ? switch_events[look->event] : "-");
        table_cell(table, "%s", shown(look->waits));
    }
    if (rows->len > 0)
        table_write(table, text);
    else
        g_string_append(text, "no node is to be switched");
    table_free(table);
}

static void encode_said(struct json_writer *writer, const char *key, const char *text)
{
    if (text)
        json_key_string(writer, key, text);
}

static void encode_row(struct json_writer *writer, const struct row *row)
{
    const struct node_look *look = &row->look;

    json_begin_object(writer);
    json_key_string(writer, "node", row->node);
    encode_said(writer, "label", look->label);
    encode_said(writer, "value", look->is);
    encode_said(writer, "announced", look->mark);
    json_key_string(writer, "phase", switch_phases[look->phase]);
    json_key_int(writer, "pods", look->n_holders);
    if (look->event != SWITCH_EVENT_NONE)
        json_key_string(writer, "next", switch_events[look->event]);
    encode_said(writer, "waitsFor", look->waits);
    json_key_bool(writer, "stuck", look->stuck);
    json_end_object(writer);
}

static void write_document(const GArray *rows, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_array(&writer, "nodes");
    for (guint i = 0; i < rows->len; i++)
        encode_row(&writer, &g_array_index(rows, struct row, i));
    json_end_array(&writer);
    json_end_object(&writer);
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

static bool add_all(const struct switching *switching, GArray *rows, GError **error)
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
        if (!add_row(switching, view.name, NULL, rows, error))
            return false;
    }
    return true;
}

/* Of one node, or of all. */
static enum exit_code show(const struct config *config, const struct switching *switching,
                           const char *node, const struct switch_mark *wanted)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GArray) rows = new_rows();
    g_autoptr(GError) failure = NULL;

    if (node ? add_row(switching, node, wanted, rows, &failure)
             : add_all(switching, rows, &failure)) {
        if (print_is_document(config))
            write_document(rows, text);
        else
            write_table(rows, text);
    }
    return print_answer(config, text, failure);
}

/* --- doing ---------------------------------------------------------------------------------------- */

static void tell(const char *node, const struct node_look *look, char **said)
{
    g_autofree char *text =
        look->event != SWITCH_EVENT_NONE
            ? g_strdup_printf("%s: %s", node, switch_events[look->event])
            : g_strdup_printf("%s: %s: %s%s%s", node, switch_phases[look->phase],
                              shown(look->waits), look->unread ? ": " : "",
                              look->unread ? look->unread : "");

    if (g_strcmp0(text, *said) != 0)
        say("%s", text);
    g_free(*said);
    *said = g_steal_pointer(&text);
}

/* Nothing is announced any more: whoever else switches has done it, or it was taken away. */
static enum exit_code find_end(const struct switching *switching, const char *node,
                               const struct switch_mark *wanted)
{
    g_autoptr(GArray) rows = new_rows();
    g_autoptr(GError) failure = NULL;

    if (!add_row(switching, node, wanted, rows, &failure))
        return complain_of(failure);
    const char *is = g_array_index(rows, struct row, 0).look.is;
    if (g_strcmp0(is, wanted->value) == 0)
        return EXIT_OK;
    complain("node '%s': the switch was taken away; %s is '%s'", node, wanted->label, shown(is));
    return EXIT_FAILED;
}

/* Until it is over, one way or another. */
static enum exit_code carry_out(const struct switching *switching, const char *node,
                                const struct switch_mark *wanted)
{
    struct node_switch with = switching->with;
    g_autofree char *said = NULL;
    bool begun = false;

    with.only = wanted;

    for (;;) {
        g_autoptr(GError) failure = NULL;
        struct node_look look;
        const enum outcome outcome =
            node_switch_look(&with, node, begun ? NULL : wanted, &look, &failure);
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
        if (outcome == OUTCOME_OK && event == SWITCH_EVENT_DONE)
            return EXIT_OK;
        if (outcome == OUTCOME_OK && gone)
            return find_end(switching, node, wanted);
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
    const struct node_mode *mode = name ? switch_mode_find(name) : NULL;
    g_autofree char *now = switch_time_format(g_get_real_time() / G_USEC_PER_SEC);
    g_autofree char *mark = mode ? g_strdup_printf("%s%s@%s", mode->label, sign, now) : NULL;
    struct mode_value value;

    if (!mark || !switch_mark_parse(mark, ret_mark))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is not like 'device-plugin.config=VALUE', 'mig.config=VALUE' or "
                         "'slots=4'",
                         text);
    if (calendar_value(switching->calendar, mode, ret_mark->value, switching->with.replicas,
                       &value))
        return true;
    if (switch_mode_is_slots(mode))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is neither a number from 1 to %d nor 'any'", ret_mark->value,
                         NODE_SLOTS_MAX);
    return fail_with(error, GPULEDGER_ERROR_INVALID, "what '%s' makes of cards is not known: %s",
                     ret_mark->value,
                     mode->recuts ? "name it in the layouts of --calendar"
                                  : "name it in --nvidia-config-replicas");
}

/* --- which layout --------------------------------------------------------------------------------- */

/* Whether the layout is to be chosen: "mig.config=auto". */
static bool is_auto(const char *text)
{
    const char *sign = strchr(text, '=');
    g_autofree char *name = sign ? g_strndup(text, (gsize)(sign - text)) : NULL;
    const struct node_mode *mode = name ? switch_mode_find(name) : NULL;

    return mode && mode->recuts && g_str_equal(sign + 1, AUTO);
}

static bool advise(const struct config *config, struct switching *switching,
                   struct layout_advice *ret_advice, GError **error)
{
    static const char nothing[] = "nodes: []";

    if (!switching->calendar) { /* one that knows the layouts alone */
        cJSON *tree = yaml_load(nothing, strlen(nothing), error);
        switching->calendar = tree ? calendar_new(tree, switching->with.replicas, error) : NULL;
        cJSON_Delete(tree);
        switching->with.calendar = switching->calendar;
    }
    return switching->calendar &&
           layouts_advise(&(struct layouts_query){.config = config,
                                                  .client = switching->client,
                                                  .calendar = switching->calendar,
                                                  .node = config->words->pdata[0]},
                          ret_advice, error);
}

/* The value that takes the place of "auto"; NULL: the node stays as it is, or, with an exit code, nobody
 * can say. What was found is printed, unless it is also carried out and a document is wanted of that. */
static char *choose_layout(const struct config *config, struct switching *switching,
                           enum exit_code *ret_code)
{
    const char *node = config->words->pdata[0];
    g_auto(layout_advice) advice = {0};
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;

    if (!advise(config, switching, &advice, &failure)) {
        *ret_code = complain_of(failure);
        return NULL;
    }
    const struct layout_row *best = &g_array_index(advice.rows, struct layout_row, advice.best);
    if (print_is_document(config))
        layouts_write_document(&advice, node, text);
    else
        layouts_write_table(&advice, node, text);
    *ret_code = config_section(config, maintenance)->apply && !best->is && print_is_document(config)
                    ? EXIT_OK
                    : print_answer(config, text, NULL);
    return best->is ? NULL : g_strdup_printf("mig.config=%s", best->name);
}

static enum exit_code run(const struct config *config, struct switching *switching)
{
    const struct maintenance_settings *maintenance = config_section(config, maintenance);
    const char *node = config->words->len > 0 ? config->words->pdata[0] : NULL;
    g_autoptr(GError) failure = NULL;
    struct switch_mark wanted;

    if (config->words->len < 2) {
        if (!maintenance->apply)
            return show(config, switching, node, NULL);
        complain("option '--apply': to what? " PROGRAM " switch NODE LABEL=VALUE");
        return EXIT_USAGE;
    }
    g_autofree char *target = g_strdup(config->words->pdata[1]);
    if (is_auto(target)) {
        enum exit_code code;
        g_free(target);
        target = choose_layout(config, switching, &code);
        if (!target || !maintenance->apply || code != EXIT_OK)
            return code;
    }
    if (!read_target(switching, target, &wanted, &failure)) {
        complain("%s", failure->message);
        return EXIT_USAGE;
    }
    if (!maintenance->apply)
        return show(config, switching, node, &wanted);
    const enum exit_code code = carry_out(switching, node, &wanted);
    if (print_is_document(config) && show(config, switching, node, NULL) != EXIT_OK)
        return EXIT_FAILED;
    return code;
}

enum exit_code switch_run(const struct config *config, const struct config_inputs *inputs)
{
    g_autoptr(GError) failure = NULL;
    struct switching switching;
    enum exit_code code = EXIT_FAILED;

    if (switching_open(config, &switching, &failure))
        code = run(config, &switching);
    else
        code = complain_of(failure);
    switching_close(&switching);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes/switch_layouts.h"

#include "base/printable.h"
#include "cmd/local.h"
#include "core/fail.h"
#include "core/node_traits.h"
#include "json/json.h"
#include "kube/clock.h"
#include "kube/yaml_document.h"
#include "options/table.h"
#include "options/maintenance_section.h"

#include <string.h>

#define CALL_MS 10000
#define FILE_KEY "config.yaml"

/* --- where layouts come from ---------------------------------------------------------------------- */

static void add_layout(GArray *layouts, const char *name, const struct mode_value *value)
{
    const struct mig_layout layout = {g_strdup(name), *value};

    g_array_append_val(layouts, layout);
}

/* The text of the file in the ConfigMap, which the arena owns; NULL: it cannot be had. */
static const char *read_configmap(struct api_client *client, const char *place,
                                  struct json_arena *arena, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(place, "/", 3);

    if (g_strv_length(parts) != 2 || !*parts[0] || !*parts[1]) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "expected NAMESPACE/NAME");
        return NULL;
    }
    g_autofree char *ns = g_uri_escape_string(parts[0], NULL, FALSE);
    g_autofree char *name = g_uri_escape_string(parts[1], NULL, FALSE);
    g_autofree char *path = g_strconcat("/api/v1/namespaces/", ns, "/configmaps/", name, NULL);
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};

    if (api_client_call(client, &call, reply, error) != OUTCOME_OK)
        return NULL;
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(object, "data");
    const cJSON *file = cJSON_GetObjectItemCaseSensitive(data, FILE_KEY);
    if (object && !cJSON_IsString(file))
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "it has no '" FILE_KEY "'");
    return cJSON_IsString(file) ? file->valuestring : NULL;
}

static bool add_configured(const struct layouts_query *query, const struct mig_card *card,
                           GArray *layouts, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const char *text = read_configmap(
        query->client, config_section(query->config, maintenance)->mig_configs, arena, error);
    cJSON *tree = text ? yaml_load(text, strlen(text), error) : NULL;
    g_autoptr(GArray) offered = tree ? mig_layouts_read(tree, card, error) : NULL;

    cJSON_Delete(tree);
    for (guint i = 0; offered && i < offered->len; i++) {
        const struct mig_layout *layout = &g_array_index(offered, struct mig_layout, i);
        struct mode_value known;
        guint j = 0;
        const char *name;
        while ((name = calendar_layout(query->calendar, j, &known)) &&
               !g_str_equal(name, layout->name))
            j++;
        if (name)
            continue; /* the operator knows better */
        add_layout(layouts, layout->name, &layout->value);
        calendar_add_layout(query->calendar, layout->name, &layout->value);
    }
    return offered || fail_within(error, "option '--mig-configs': ");
}

static GArray *find_layouts(const struct layouts_query *query, const struct mig_card *card,
                            GError **error)
{
    GArray *layouts = mig_layouts_new();
    struct mode_value value;
    const char *name;

    for (guint i = 0; (name = calendar_layout(query->calendar, i, &value)); i++)
        add_layout(layouts, name, &value);
    const bool ok =
        (!*config_section(query->config, maintenance)->mig_configs ||
         add_configured(query, card, layouts, error)) &&
        (layouts->len > 0 ||
         fail_with(error, GPULEDGER_ERROR_INVALID,
                   "no layouts to choose from: name them in the layouts of --calendar, or the "
                   "ConfigMap of mig-manager with --mig-configs"));
    if (!ok)
        g_clear_pointer(&layouts, g_array_unref);
    return layouts;
}

/* --- the choice ----------------------------------------------------------------------------------- */

static bool read_card(struct store *store, const char *node, struct mig_card *ret_card,
                      GError **error)
{
    const struct node *known = ledger_node(store_lock(store), node);
    const bool there = known && known->present && known->traits;
    const bool read = there && mig_card_read(&known->traits->labels, ret_card);

    store_unlock(store);
    if (!there)
        return fail_with(error, GPULEDGER_ERROR_NOT_FOUND, "there is no node '%s'", node);
    return read ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "node '%s': its labels do not tell how large a card is, or the plugin's "
                     "strategy is 'single', where nobody knows which instance a pod wants",
                     node);
}

bool layouts_advise(const struct layouts_query *query, struct layout_advice *ret_advice,
                    GError **error)
{
    g_autoptr(GArray) layouts = NULL;
    struct mig_card card;
    struct local local;

    if (!local_open(query->config, &local, error))
        return false;
    if (read_card(local.store, query->node, &card, error))
        layouts = find_layouts(query, &card, error);
    const bool ok = layouts && layout_advise(&(struct layout_query){.store = local.store,
                                                                    .node = query->node,
                                                                    .card = &card,
                                                                    .layouts = layouts},
                                             ret_advice, error);
    local_close(&local);
    return ok;
}

/* --- what is shown -------------------------------------------------------------------------------- */

/* "7x1g.5gb", "whole cards"; of what nobody knows "?". */
static char *describe(const struct mode_value *value)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < value->n_profiles; i++) {
        if (value->profiles[i].n == 0)
            g_string_append(text, "whole cards");
        else
            printable_append(text, "%s%dx%s", i > 0 ? "+" : "", value->profiles[i].n,
                             value->profiles[i].profile);
    }
    if (value->n_profiles == 0)
        g_string_append(text, "?");
    return g_string_free(text, FALSE);
}

void layouts_write_table(const struct layout_advice *advice, const char *node, GString *text)
{
    static const char *const headings[] = {"LAYOUT", "EACH CARD", "SERVES", "PODS ENDED", "CHOICE"};
    struct table *table = table_new(G_N_ELEMENTS(headings), headings);
    const struct layout_row *best = &g_array_index(advice->rows, struct layout_row, advice->best);

    printable_append(
        text, "%s: %" G_GINT64_FORMAT " cards; expected, by %" G_GUINT64_FORMAT " pods:", node,
        advice->n_cards, advice->n_pods);
    for (guint i = 0; i < advice->expected->len; i++) {
        const struct layout_expected *expected =
            &g_array_index(advice->expected, struct layout_expected, i);
        printable_append(text, "%s %.1f%% %s (%.0f on other nodes)", i > 0 ? "," : "",
                         expected->part * 100, expected->resource, expected->elsewhere);
    }
    g_string_append(text, "\n");
    for (guint i = 0; i < advice->rows->len; i++) {
        const struct layout_row *row = &g_array_index(advice->rows, struct layout_row, i);
        g_autofree char *makes = describe(&row->value);
        table_cell(table, "%s", row->name);
        table_cell(table, "%s", makes);
        table_cell(table, "%.1f%%", row->serves * 100);
        table_cell(table, "%u", row->n_ended);
        table_cell(table, "%s",
                   i == advice->best ? row->is ? "stays" : "chosen"
                   : row->is         ? "is"
                                     : "-");
        table_tone(table, i == advice->best ? TONE_GOOD : TONE_PLAIN);
    }
    table_write(table, text);
    table_free(table);
    if (best->is)
        g_string_append(text, "No other layout serves more of the expected pods.\n");
}

static void encode_row(struct json_writer *writer, const struct layout_row *row)
{
    json_begin_object(writer);
    json_key_string(writer, "name", row->name);
    json_key_object(writer, "eachCard");
    for (size_t i = 0; i < row->value.n_profiles; i++) {
        if (row->value.profiles[i].n > 0)
            json_key_int(writer, row->value.profiles[i].profile, row->value.profiles[i].n);
    }
    json_end_object(writer);
    json_key(writer, "serves");
    json_double(writer, row->serves);
    json_key_int(writer, "podsEnded", row->n_ended);
    json_key_bool(writer, "is", row->is);
    json_end_object(writer);
}

void layouts_write_document(const struct layout_advice *advice, const char *node, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "node", node);
    json_key_int(&writer, "cards", advice->n_cards);
    json_key_int(&writer, "pods", (int64_t)advice->n_pods);
    json_key_string(&writer, "chosen",
                    g_array_index(advice->rows, struct layout_row, advice->best).name);
    json_key_array(&writer, "layouts");
    for (guint i = 0; i < advice->rows->len; i++)
        encode_row(&writer, &g_array_index(advice->rows, struct layout_row, i));
    json_end_array(&writer);
    json_key_array(&writer, "expected");
    for (guint i = 0; i < advice->expected->len; i++) {
        const struct layout_expected *expected =
            &g_array_index(advice->expected, struct layout_expected, i);
        json_begin_object(&writer);
        json_key_string(&writer, "resource", expected->resource);
        json_key(&writer, "part");
        json_double(&writer, expected->part);
        json_key_int(&writer, "elsewhere", (int64_t)expected->elsewhere);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

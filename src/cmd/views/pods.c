/* SPDX-License-Identifier: Apache-2.0 */
/* The command "pods": who holds which card, a row for each pod. */
#include "cmd/views/listing.h"
#include "base/printable.h"
#include "core/bytes.h"
#include "json/json.h"
#include "options/client_section.h"

#include <string.h>

/* As /api/v1/nodes has them. */
struct node_part {
    int64_t memory_unit;
    const cJSON *pods;
};
static const struct json_field node_fields[] = {
    JSON_FIELD_INT64(struct node_part, memory_unit, "memoryUnitBytes", 0),
    JSON_FIELD_ARRAY(struct node_part, pods, "pods", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct pod_row {
    const char *ns, *name, *uid, *node, *dialect, *state;
    bool waiting;
    const cJSON *shares;
};
static const struct json_field pod_fields[] = {
    JSON_FIELD_STRING(struct pod_row, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod_row, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod_row, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod_row, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod_row, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_STRING(struct pod_row, state, "state", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct pod_row, waiting, "waiting", 0),
    JSON_FIELD_ARRAY(struct pod_row, shares, "shares", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct share_row {
    int64_t memory, core, devices;
    const char *resource;
};
static const struct json_field share_fields[] = {
    JSON_FIELD_INT64(struct share_row, memory, "memoryBytes", 0),
    JSON_FIELD_INT64(struct share_row, core, "coreThousandths", 0),
    JSON_FIELD_INT64(struct share_row, devices, "devices", 0),
    JSON_FIELD_STRING(struct share_row, resource, "resource", 0),
    JSON_FIELD_END,
};

static const char *const headings[] = {"NAMESPACE", "NAME",    "NODE",    "CARDS", "MEMORY",
                                       "STATE",     "COMPUTE", "DIALECT", "UID"};
#define COLUMNS_NARROW 6

/* What all shares of a pod come to. */
struct holding {
    GString *cards; /* "0,2", "2 x nvidia.com/gpu", "?" where nobody knows the card */
    int64_t memory, core;
};

static void name_card(GString *cards, const char *name)
{
    g_auto(GStrv) named = g_strsplit(cards->str, ",", -1);

    if (!g_strv_contains((const char *const *)named, name))
        printable_append(cards, "%s%s", cards->len ? "," : "", name);
}

static bool add_share(struct json_arena *arena, const cJSON *item, struct holding *holding,
                      GError **error)
{
    struct share_row share = {0};
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(item, "card");
    g_autofree char *name = NULL;

    if (!json_decode(arena, item, share_fields, &share, error))
        return false;
    if (share.devices > 0 && share.resource)
        name = g_strdup_printf("%" G_GINT64_FORMAT " x %s", share.devices, share.resource);
    else if (cJSON_IsNumber(card))
        name = g_strdup_printf("%d", card->valueint);
    name_card(holding->cards, name ? name : "?");
    holding->memory += share.memory;
    holding->core += share.core;
    return true;
}

static void add_amounts(struct table *table, int64_t memory, int64_t unit)
{
    const bool small = unit == MIB;

    if (memory > 0)
        table_cell(table, "%" G_GINT64_FORMAT " %s", memory / (small ? MIB : GIB),
                   small ? "MiB" : "GiB");
    else
        table_cell(table, "-");
}

static enum tone tone_of(const struct pod_row *pod)
{
    if (g_str_equal(pod->state, "held") || g_str_equal(pod->state, "unknown"))
        return TONE_WRONG;
    return pod->waiting ? TONE_CARE : TONE_PLAIN;
}

static bool add_pod(struct json_arena *arena, struct table *table, const struct pod_row *pod,
                    int64_t unit, bool wide, GError **error)
{
    g_autoptr(GString) cards = g_string_new(NULL);
    struct holding holding = {.cards = cards};
    const cJSON *share;

    cJSON_ArrayForEach (share, pod->shares) {
        if (!add_share(arena, share, &holding, error))
            return false;
    }
    table_cell(table, "%s", pod->ns);
    table_cell(table, "%s", pod->name);
    table_cell(table, "%s", pod->node);
    table_cell(table, "%s", cards->len ? cards->str : "?");
    add_amounts(table, holding.memory, unit);
    table_cell(table, "%s", pod->waiting ? "waiting" : pod->state);
    table_tone(table, tone_of(pod));
    if (wide) {
        if (holding.core > 0)
            table_cell(table, "%.2f", (double)holding.core / 1000);
        else
            table_cell(table, "-");
        table_cell(table, "%s", pod->dialect);
        table_cell(table, "%s", pod->uid);
    }
    return true;
}

/* Where the pods go: into a table, or as they are into a document. */
struct destination {
    const char *ns; /* "": all namespaces */
    struct table *table;
    struct json_writer *writer; /* NULL: the table */
    bool wide;
};

static bool list_node(struct json_arena *arena, const cJSON *item, const struct destination *to,
                      GError **error)
{
    struct node_part node = {0};
    const cJSON *element;

    if (!json_decode(arena, item, node_fields, &node, error))
        return false;
    cJSON_ArrayForEach (element, node.pods) {
        struct pod_row pod = {0};
        if (!json_decode(arena, element, pod_fields, &pod, error))
            return false;
        if (*to->ns && strcmp(to->ns, pod.ns) != 0)
            continue;
        if (to->writer)
            json_value(to->writer, element);
        else if (!add_pod(arena, to->table, &pod, node.memory_unit, to->wide, error))
            return false;
    }
    return true;
}

static bool list_nodes(const GString *body, const struct destination *to, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, body->str, body->len, error);
    const cJSON *item;

    if (!document)
        return false;
    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(document, "nodes")) {
        if (!list_node(arena, item, to, error))
            return false;
    }
    return true;
}

static struct table *make_rows(const struct config *config, const GString *body, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    const bool wide = client_options->output == OUTPUT_WIDE;
    struct table *table = table_new(wide ? G_N_ELEMENTS(headings) : COLUMNS_NARROW, headings);
    const struct destination to = {
        .ns = client_options->pods_namespace, .table = table, .wide = wide};

    if (!list_nodes(body, &to, error))
        g_clear_pointer(&table, table_free);
    return table;
}

static bool make_document(const struct config *config, const GString *body, GString *text,
                          GError **error)
{
    struct json_writer writer;
    const struct destination to = {.ns = config_section(config, client)->pods_namespace,
                                   .writer = &writer};

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_array(&writer, "pods");
    const bool ok = list_nodes(body, &to, error);
    json_end_array(&writer);
    json_end_object(&writer);
    return ok;
}

enum exit_code pods_run(const struct config *config, const struct config_inputs *inputs)
{
    const struct client_settings *client_options = config_section(config, client);
    static const struct listing listing = {
        .make_rows = make_rows,
        .make_document = make_document,
        .names = "{range .pods[*]}pod/{.namespace}/{.name}{'\\n'}{end}",
    };

    if (client_options->all_namespaces && *client_options->pods_namespace) {
        complain("option '--namespace': --all-namespaces is given as well; keep one of them");
        return EXIT_USAGE;
    }
    return listing_run(config, NULL, &listing);
}

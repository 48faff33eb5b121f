/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/card_service.h"

#include "core/fail.h"
#include "dialect/marks/cordoned_cards.h"
#include "kube/clock.h"
#include "maintain/device_taint.h"
#include "wire/kubernetes.h"

#include <string.h>

#define CALL_MS 10000
#define TRIES_MAX 5

/* --- objects ---------------------------------------------------------------------------------- */

void service_change_free(gpointer data)
{
    struct service_change *change = data;

    g_free(change->object);
    g_free(change->field);
    g_free(change->from);
    g_free(change->to);
    g_free(change);
}

/* What is read of an object beside what a view of it has. */
struct head {
    const char *version;
    struct string_pairs annotations, data;
};
static const struct json_field head_fields[] = {
    JSON_FIELD_STRING(struct head, version, "metadata.resourceVersion", 0),
    JSON_FIELD_PAIRS(struct head, annotations, "metadata.annotations", 0),
    JSON_FIELD_PAIRS(struct head, data, "data", 0),
    JSON_FIELD_END,
};

/* One try at one object. */
struct write {
    const struct service_query *query;
    struct json_arena *arena;
    GPtrArray *changes;
    guint n_before; /* changes of the objects before this one */
    const char *object;
    char *path;
};

static void note(const struct write *write, const char *field, const char *from, const char *to)
{
    struct service_change *change = g_new(struct service_change, 1);

    *change = (struct service_change){g_strdup(write->object), g_strdup(field), g_strdup(from),
                                      g_strdup(to)};
    g_ptr_array_add(write->changes, change);
}

static bool is_changed(const struct write *write)
{
    return write->changes->len > write->n_before;
}

static enum outcome call(const struct write *write, const char *method, const char *path,
                         const GString *body, GString *reply, GError **error)
{
    const struct api_call asked = {
        .method = method,
        .path = path,
        .body = body,
        .deadline_ms = clock_ms() + CALL_MS,
        .once = body != NULL,
    };

    return api_client_call(write->query->client, &asked, reply, error);
}

static enum outcome get(const struct write *write, const cJSON **ret_object, GError **error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const enum outcome outcome = call(write, "GET", write->path, NULL, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    *ret_object = json_parse(write->arena, reply->str, reply->len, error);
    return *ret_object ? OUTCOME_OK : OUTCOME_REFUSED;
}

/* Begins a merge patch (RFC 7386) that the API server refuses if the object has changed meanwhile; leaves
 * its annotations open. */
static void begin_patch(struct json_writer *writer, GString *body, const char *version)
{
    json_writer_init(writer, body);
    json_begin_object(writer);
    json_key_object(writer, "metadata");
    if (version)
        json_key_string(writer, "resourceVersion", version);
    json_key_object(writer, "annotations");
}

static void end_annotations(struct json_writer *writer)
{
    json_end_object(writer);
    json_end_object(writer);
}

/* --- lists of cards --------------------------------------------------------------------------- */

/* The items of a list, without those that are empty. */
static GPtrArray *split(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text ? text : "", ",", -1);
    GPtrArray *items = g_ptr_array_new_with_free_func(g_free);

    for (char **part = parts; *part; part++) {
        if (*g_strstrip(*part))
            g_ptr_array_add(items, g_strdup(*part));
    }
    return items;
}

static bool remove_item(GPtrArray *items, const char *item)
{
    bool found = false;

    for (guint i = items->len; i-- > 0;) {
        if (g_str_equal(items->pdata[i], item)) {
            g_ptr_array_remove_index(items, i);
            found = true;
        }
    }
    return found;
}

static char *join(const GPtrArray *items)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; i < items->len; i++)
        g_string_append_printf(text, "%s%s", i ? "," : "", (const char *)items->pdata[i]);
    return items->len ? g_strdup(text->str) : NULL;
}

/* The list with the item, or without it; NULL: an empty one. */
static char *edit_list(const char *list, const char *item, bool without)
{
    g_autoptr(GPtrArray) items = split(list);
    const bool there = g_ptr_array_find_with_equal_func(items, item, g_str_equal, NULL);

    if (without)
        remove_item(items, item);
    else if (!there)
        g_ptr_array_add(items, g_strdup(item));
    return there == !without ? g_strdup(list) : join(items);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Whether the dialect reads this node's cards. */
static bool is_of(const struct topology *topology, const struct dialect *dialect)
{
    for (int32_t i = 0; i < topology->n_dialects; i++) {
        if (topology->dialects[i] == dialect)
            return true;
    }
    return topology->dialect == dialect;
}

static bool edit_annotation(const struct write *write, struct json_writer *writer, const char *key,
                            const char *from, char *take_to)
{
    g_autofree char *to = take_to, *field = g_strconcat("annotation ", key, NULL);

    if (g_strcmp0(from, to) == 0)
        return false;
    json_key_string(writer, key, to);
    note(write, field, from, to);
    return true;
}

/* The node's cards, and the card in question. */
struct target {
    struct topology *topology;
    char *uuid; /* NULL: it is not known */
};

/* An item that may mean the card keeps it closed, whatever else is taken back. */
static bool check_opened(const struct card_place *place, struct cordon_edit edit, GError **error)
{
    g_autofree char *uuid = NULL, *after = cordoned_cards_edit(&edit, &uuid);

    edit.list = after;
    g_autofree char *item = cordoned_cards_keeper(&edit);
    return !item || fail_with(error, GPULEDGER_ERROR_INVALID,
                              "card %d of node '%s' stays closed: the item '%s' of annotation "
                              "'" CORDONED_CARDS_KEY
                              "' may mean it; cordon the card that is meant again, then "
                              "take the item out with kubectl annotate",
                              place->card, place->node, item);
}

static bool check_card(const struct write *write, const struct node_view *view,
                       const struct topology *topology, GError **error)
{
    const struct card_place *place = write->query->place;
    const struct cordon_edit edit = {string_pairs_get(&view->annotations, CORDONED_CARDS_KEY),
                                     topology, place->card, write->query->open};

    if (topology->n_cards == 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "node '%s' hands out devices by count, and only its plugin knows on which "
                         "card they are; give the node alone",
                         place->node);
    if (place->card >= topology->n_cards && !(edit.open && cordoned_cards_lists(&edit)))
        return fail_with(error, GPULEDGER_ERROR_NOT_FOUND, "node '%s' has no card %d, only 0 to %d",
                         place->node, place->card, topology->n_cards - 1);
    return !edit.open || check_opened(place, edit, error);
}

/* Reads the cards of the node. */
static bool read_cards(const struct write *write, const cJSON *object, struct node_view *ret_view,
                       struct target *target, GError **error)
{
    const struct card_place *place = write->query->place;
    g_autofree char *warning = NULL;
    GError *failure = NULL;

    topology_free(target->topology); /* of an earlier try */
    target->topology = topology_new();
    if (!node_view_decode(write->arena, object, ret_view, error))
        return false;
    if (!dialect_read_topology(ret_view, write->query->dialects, target->topology, &warning,
                               &failure) &&
        !failure)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "node '%s' has no GPU of any dialect",
                         place->node);
    if (failure) {
        g_propagate_error(error, failure);
        return false;
    }
    return check_card(write, ret_view, target->topology, error);
}

static void edit_card(const struct write *write, struct json_writer *writer,
                      const struct node_view *view, struct target *target)
{
    const struct cordon_edit edit = {string_pairs_get(&view->annotations, CORDONED_CARDS_KEY),
                                     target->topology, write->query->place->card,
                                     write->query->open};

    g_clear_pointer(&target->uuid, g_free);
    edit_annotation(write, writer, CORDONED_CARDS_KEY, edit.list,
                    cordoned_cards_edit(&edit, &target->uuid));
    for (int i = 0; target->uuid && dialects[i]; i++) {
        const char *key = dialects[i]->cordon_key;
        if (!key || !is_of(target->topology, dialects[i]))
            continue;
        const char *list = string_pairs_get(&view->annotations, key);
        edit_annotation(write, writer, key, list, edit_list(list, target->uuid, edit.open));
    }
}

static void edit_node(const struct write *write, struct json_writer *writer,
                      const struct node_view *view)
{
    const bool wanted = !write->query->open;

    if (view->cordoned == wanted)
        return;
    json_key_object(writer, "spec");
    json_key_bool(writer, "unschedulable", wanted);
    json_end_object(writer);
    note(write, "spec.unschedulable", view->cordoned ? "true" : "false", wanted ? "true" : "false");
}

static enum outcome write_node(const struct write *write, struct target *target, GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    struct json_writer writer;
    const cJSON *object;
    struct node_view view;
    struct head head = {0};
    enum outcome outcome = get(write, &object, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    const bool one_card = write->query->place->card != CARD_UNKNOWN;
    if (!json_decode(write->arena, object, head_fields, &head, error) ||
        !(one_card ? read_cards(write, object, &view, target, error)
                   : node_view_decode(write->arena, object, &view, error)))
        return OUTCOME_REFUSED;
    begin_patch(&writer, body, head.version);
    if (one_card)
        edit_card(write, &writer, &view, target);
    end_annotations(&writer);
    if (!one_card)
        edit_node(write, &writer, &view);
    json_end_object(&writer);
    if (!is_changed(write) || write->query->dry_run)
        return OUTCOME_OK;
    return call(write, "PATCH", write->path, body, reply, error);
}

/* --- ConfigMaps of unhealthy cards ------------------------------------------------------------- */

static void write_gpus(struct json_writer *writer, const char *value)
{
    json_key_object(writer, "data");
    json_key_string(writer, "gpus", value ? value : "");
    json_end_object(writer);
}

static enum outcome create_health(const struct write *write, const char *ns, const char *name,
                                  const char *item, GError **error)
{
    g_autofree char *path = g_strconcat("/api/v1/namespaces/", ns, "/configmaps", NULL);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    struct json_writer writer;

    note(write, "gpus", NULL, item);
    if (write->query->dry_run)
        return OUTCOME_OK;
    json_writer_init(&writer, body);
    json_begin_object(&writer);
    json_key_string(&writer, "apiVersion", "v1");
    json_key_string(&writer, "kind", "ConfigMap");
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "name", name);
    json_key_object(&writer, "annotations");
    json_key_string(&writer, CORDONED_CARDS_KEY, item);
    end_annotations(&writer);
    write_gpus(&writer, item);
    json_end_object(&writer);
    return call(write, "POST", path, body, reply, error);
}

/* Who else has written an index keeps it. */
static enum outcome edit_health(const struct write *write, const cJSON *object, const char *item,
                                GError **error)
{
    const bool open = write->query->open;
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    struct json_writer writer;
    struct head head = {0};

    if (!json_decode(write->arena, object, head_fields, &head, error))
        return OUTCOME_REFUSED;
    const char *ours = string_pairs_get(&head.annotations, CORDONED_CARDS_KEY);
    const char *gpus = string_pairs_get(&head.data, "gpus");
    g_autoptr(GPtrArray) own = split(ours), there = split(gpus);
    const bool is_ours = g_ptr_array_find_with_equal_func(own, item, g_str_equal, NULL);
    const bool is_there = g_ptr_array_find_with_equal_func(there, item, g_str_equal, NULL);
    if (open ? !is_ours : is_there)
        return OUTCOME_OK;
    g_autofree char *to = edit_list(gpus, item, open);
    g_autofree char *ours_to = edit_list(ours, item, open);
    note(write, "gpus", gpus, to);
    if (write->query->dry_run)
        return OUTCOME_OK;
    begin_patch(&writer, body, head.version);
    json_key_string(&writer, CORDONED_CARDS_KEY, ours_to);
    end_annotations(&writer);
    write_gpus(&writer, to);
    json_end_object(&writer);
    return call(write, "PATCH", write->path, body, reply, error);
}

static enum outcome write_health(const struct write *write, const struct dialect *dialect,
                                 GError **error)
{
    const struct card_place *place = write->query->place;
    g_autofree char *name = g_strconcat(dialect->health_prefix, place->node, NULL);
    g_autofree char *item = g_strdup_printf("%d", place->card);
    g_autoptr(GError) failure = NULL;
    const cJSON *object;
    const enum outcome outcome = get(write, &object, &failure);

    if (outcome == OUTCOME_OK)
        return edit_health(write, object, item, error);
    if (outcome != OUTCOME_NOT_FOUND) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return outcome;
    }
    return write->query->open ? OUTCOME_OK
                              : create_health(write, dialect->health_namespace, name, item, error);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* NULL: the node itself. Reads and writes until nobody else has written between. */
static bool write_object(const struct service_query *query, const struct dialect *health,
                         struct target *target, GPtrArray *changes, GError **error)
{
    const struct card_place *place = query->place;
    g_autofree char *escaped = g_uri_escape_string(place->node, NULL, FALSE);
    g_autofree char *path = health
                                ? g_strconcat("/api/v1/namespaces/", health->health_namespace,
                                              "/configmaps/", health->health_prefix, escaped, NULL)
                                : g_strconcat("/api/v1/nodes/", escaped, NULL);
    g_autofree char *object = health ? g_strconcat("configmap ", health->health_namespace, "/",
                                                   health->health_prefix, place->node, NULL)
                                     : g_strconcat("node ", place->node, NULL);
    const guint n_before = changes->len;
    enum outcome outcome = OUTCOME_CONFLICT;

    for (int i = 0; i < TRIES_MAX && outcome == OUTCOME_CONFLICT; i++) {
        g_autoptr(json_arena) arena = json_arena_new();
        const struct write write = {query, arena, changes, n_before, object, path};
        g_clear_error(error);
        g_ptr_array_set_size(changes, (gint)n_before);
        outcome = health ? write_health(&write, health, error) : write_node(&write, target, error);
    }
    return outcome == OUTCOME_OK || fail_within(error, "%s: ", object);
}

static void note_rule(void *data, const char *rule, bool made)
{
    struct service_change *change = g_new0(struct service_change, 1);

    change->object = g_strconcat("devicetaintrule ", rule, NULL);
    change->field = g_strdup("spec.taint");
    *(made ? &change->to : &change->from) = g_strdup("gpuledger.io/cordoned:NoSchedule");
    g_ptr_array_add(data, change);
}

static bool set_taint(const struct service_query *query, const char *uuid, GPtrArray *changes,
                      GError **error)
{
    return !uuid || device_taint_set(
                        &(struct device_taint){
                            .client = query->client,
                            .node = query->place->node,
                            .uuid = uuid,
                            .open = query->open,
                            .dry_run = query->dry_run,
                            .changed = note_rule,
                            .data = changes,
                        },
                        error);
}

static bool set_all(const struct service_query *query, struct target *target, GPtrArray *changes,
                    GError **error)
{
    if (!write_object(query, NULL, target, changes, error))
        return false;
    if (query->place->card == CARD_UNKNOWN)
        return true;
    for (int i = 0; dialects[i]; i++) {
        if (dialects[i]->health_prefix && is_of(target->topology, dialects[i]) &&
            !write_object(query, dialects[i], target, changes, error))
            return false;
    }
    return set_taint(query, target->uuid, changes, error);
}

GPtrArray *card_service_set(const struct service_query *query, GError **error)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func(service_change_free);
    struct target target = {topology_new(), NULL};
    const bool ok = set_all(query, &target, changes, error);

    topology_free(target.topology);
    g_free(target.uuid);
    return ok ? g_steal_pointer(&changes) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/clearings.h"

#include "core/fail.h"

#include <gpuledger/error.h>
#include <string.h>

/* A namespace's. */
struct share {
    GQueue clearings; /* the newest at the end */
    size_t weight;
};

struct clearings {
    GHashTable *pods;   /* the clearing's uid -> struct clearing * */
    GHashTable *shares; /* namespace -> struct share *; none is empty */
    size_t weight;
};

/* --- one ------------------------------------------------------------------------------------ */

/* Copies a text to where the next one goes, which is then behind it. */
static const char *put_text(char **next, const char *text)
{
    const size_t size = strlen(text) + 1;
    const char *copy = memcpy(*next, text, size);

    *next += size;
    return copy;
}

/* So many bytes the texts of all nodes take. */
static size_t measure(const struct preemption_node *nodes, size_t n_nodes, size_t *ret_n_uids)
{
    size_t bytes = 0;

    *ret_n_uids = 0;
    for (size_t i = 0; i < n_nodes; i++) {
        bytes += strlen(nodes[i].name) + 1;
        for (size_t j = 0; j < nodes[i].n_uids; j++)
            bytes += strlen(nodes[i].uids[j]) + 1;
        *ret_n_uids += nodes[i].n_uids;
    }
    return bytes;
}

struct clearing *clearing_new(const char *uid, const char *ns, const struct preemption_node *nodes,
                              size_t n_nodes)
{
    struct clearing *clearing = g_new0(struct clearing, 1);
    size_t n_uids;

    g_atomic_ref_count_init(&clearing->references);
    clearing->uid = g_strdup(uid);
    clearing->ns = g_strdup(ns ? ns : "");
    const size_t bytes =
        strlen(clearing->uid) + strlen(clearing->ns) + measure(nodes, n_nodes, &n_uids);
    clearing->texts = g_malloc(bytes + 1);
    clearing->uids = g_new(const char *, n_uids + 1);
    clearing->nodes = g_new0(struct preemption_node, n_nodes + 1);
    clearing->n_nodes = n_nodes;
    clearing->weight = 1 + n_nodes + n_uids + bytes / CLEARING_UNIT;
    char *text = clearing->texts;
    const char **next = clearing->uids;
    for (size_t i = 0; i < n_nodes; i++) {
        struct preemption_node *copy = &clearing->nodes[i];
        *copy = (struct preemption_node){.name = put_text(&text, nodes[i].name), .uids = next};
        for (; copy->n_uids < nodes[i].n_uids; copy->n_uids++)
            *next++ = put_text(&text, nodes[i].uids[copy->n_uids]);
    }
    return clearing;
}

struct clearing *clearing_ref(struct clearing *clearing)
{
    g_atomic_ref_count_inc(&clearing->references);
    return clearing;
}

void clearing_unref(struct clearing *clearing)
{
    if (!clearing || !g_atomic_ref_count_dec(&clearing->references))
        return;
    g_free(clearing->nodes);
    g_free(clearing->uids);
    g_free(clearing->texts);
    g_free(clearing->uid);
    g_free(clearing->ns);
    g_free(clearing);
}

bool clearing_is_over(int64_t since_ms, int64_t now_ms)
{
    return since_ms != 0 && now_ms - since_ms >= CLEARING_MS;
}

void clearing_encode(struct json_writer *writer, const struct clearing *clearing,
                     const struct preemption_node *nodes, size_t n_nodes)
{
    json_begin_object(writer);
    json_key_string(writer, "uid", clearing->uid);
    json_key_object(writer, "nodes");
    for (size_t i = 0; i < n_nodes; i++) {
        json_key_array(writer, nodes[i].name);
        for (size_t j = 0; j < nodes[i].n_uids; j++)
            json_string(writer, nodes[i].uids[j]);
        json_end_array(writer);
    }
    json_end_object(writer);
    json_end_object(writer);
}

struct clearing_object {
    const char *uid;
    const cJSON *nodes;
};

static const struct json_field clearing_fields[] = {
    JSON_FIELD_STRING(struct clearing_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_OBJECT(struct clearing_object, nodes, "nodes", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool decode_node(struct json_arena *arena, const cJSON *uids, struct preemption_node *node,
                        GError **error)
{
    const cJSON *item;

    node->name = uids->string;
    node->uids =
        json_arena_alloc(arena, ((size_t)cJSON_GetArraySize(uids) + 1) * sizeof *node->uids);
    if (!cJSON_IsArray(uids))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "node '%s': expected an array",
                         node->name);
    cJSON_ArrayForEach (item, uids) {
        if (!cJSON_IsString(item))
            return fail_with(error, GPULEDGER_ERROR_INVALID, "node '%s': expected strings",
                             node->name);
        node->uids[node->n_uids++] = item->valuestring;
    }
    return true;
}

struct clearing *clearing_decode(struct json_arena *arena, const cJSON *object, GError **error)
{
    struct clearing_object fields = {0};
    const cJSON *item;
    size_t n = 0;

    if (!json_decode(arena, object, clearing_fields, &fields, error))
        return NULL;
    struct preemption_node *nodes =
        json_arena_alloc(arena, ((size_t)cJSON_GetArraySize(fields.nodes) + 1) * sizeof *nodes);
    cJSON_ArrayForEach (item, fields.nodes) {
        if (!decode_node(arena, item, &nodes[n++], error))
            return NULL;
    }
    return clearing_new(fields.uid, NULL, nodes, n);
}

/* --- all of them ---------------------------------------------------------------------------- */

static void free_clearing(gpointer data)
{
    clearing_unref(data);
}

static void free_share(gpointer data)
{
    struct share *share = data;

    g_queue_clear(&share->clearings);
    g_free(share);
}

struct clearings *clearings_new(void)
{
    struct clearings *clearings = g_new0(struct clearings, 1);

    clearings->pods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_clearing);
    clearings->shares = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_share);
    return clearings;
}

void clearings_free(struct clearings *clearings)
{
    if (!clearings)
        return;
    g_hash_table_unref(clearings->shares);
    g_hash_table_unref(clearings->pods);
    g_free(clearings);
}

void clearings_clear(struct clearings *clearings)
{
    g_hash_table_remove_all(clearings->shares);
    g_hash_table_remove_all(clearings->pods);
    clearings->weight = 0;
}

struct clearing *clearings_get(const struct clearings *clearings, const char *uid)
{
    return g_hash_table_lookup(clearings->pods, uid);
}

size_t clearings_weight(const struct clearings *clearings)
{
    return clearings->weight;
}

static void drop(struct clearings *clearings, struct clearing *clearing)
{
    struct share *share = g_hash_table_lookup(clearings->shares, clearing->ns);

    clearings->weight -= clearing->weight;
    share->weight -= clearing->weight;
    g_queue_delete_link(&share->clearings, clearing->link);
    if (g_queue_is_empty(&share->clearings))
        g_hash_table_remove(clearings->shares, clearing->ns);
    g_hash_table_remove(clearings->pods, clearing->uid);
}

void clearings_forget(struct clearings *clearings, const char *uid)
{
    struct clearing *clearing = clearings_get(clearings, uid);

    if (clearing)
        drop(clearings, clearing);
}

static struct clearing *oldest_of_heaviest(const struct clearings *clearings)
{
    const struct share *heaviest = NULL;
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, clearings->shares);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct share *share = value;
        if (!heaviest || share->weight > heaviest->weight)
            heaviest = share;
    }
    return heaviest->clearings.head->data;
}

void clearings_put(struct clearings *clearings, struct clearing *take_clearing)
{
    struct clearing *clearing = take_clearing;

    clearings_forget(clearings, clearing->uid);
    struct share *share = g_hash_table_lookup(clearings->shares, clearing->ns);
    if (!share) {
        share = g_new0(struct share, 1);
        g_hash_table_insert(clearings->shares, g_strdup(clearing->ns), share);
    }
    g_queue_push_tail(&share->clearings, clearing);
    share->weight += clearing->weight;
    clearing->link = share->clearings.tail;
    g_hash_table_insert(clearings->pods, clearing->uid, clearing);
    clearings->weight += clearing->weight;
    while (clearings->weight > CLEARINGS_MAX)
        drop(clearings, oldest_of_heaviest(clearings));
}

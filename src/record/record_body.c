/* SPDX-License-Identifier: Apache-2.0 */
/* What may be kept of bodies and replies. */
#include "record/record.h"
#include "wire/preemption.h"

#include <strings.h>

struct cleaning {
    struct json_arena *arena;
    struct json_writer *writer;
    bool understood;
};

static void clean_members(struct cleaning *cleaning, const cJSON *object);

static void clean_pod(struct cleaning *cleaning, const cJSON *value)
{
    struct pod_view pod = {0};

    /* Of some victims only the UID is told. */
    if (!cJSON_GetObjectItemCaseSensitive(value, "metadata"))
        clean_members(cleaning, value);
    else if (pod_view_decode_anonymous(cleaning->arena, value, &pod, NULL))
        pod_view_encode(cleaning->writer, &pod);
    else
        cleaning->understood = false;
}

static void clean_node(struct cleaning *cleaning, const cJSON *value)
{
    struct node_view node = {0};

    if (node_view_decode(cleaning->arena, value, &node, NULL))
        node_view_encode(cleaning->writer, &node);
    else
        cleaning->understood = false;
}

/* Where API objects stand in what kube-scheduler and its extenders tell each other. Whatever else
 * looks like one is not understood. */
static const struct {
    const char *key;
    bool list;
    void (*clean)(struct cleaning *cleaning, const cJSON *value);
} places[] = {
    {"Pod", false, clean_pod},
    {"Pods", true, clean_pod},
    {"items", true, clean_node},
};

static const char *const telltales[] = {"metadata", "spec", "status"};

static void clean(struct cleaning *cleaning, const char *key, const cJSON *value);

static void clean_list(struct cleaning *cleaning, const cJSON *list,
                       void (*clean_item)(struct cleaning *cleaning, const cJSON *value))
{
    const cJSON *item;

    json_begin_array(cleaning->writer);
    cJSON_ArrayForEach (item, list) {
        if (clean_item)
            clean_item(cleaning, item);
        else
            clean(cleaning, "", item);
    }
    json_end_array(cleaning->writer);
}

static void clean_members(struct cleaning *cleaning, const cJSON *object)
{
    const cJSON *item;

    json_begin_object(cleaning->writer);
    cJSON_ArrayForEach (item, object) {
        bool told = false;
        for (size_t i = 0; i < G_N_ELEMENTS(telltales); i++)
            told |= strcasecmp(item->string, telltales[i]) == 0;
        /* The list of nodes has metadata of its own, which is empty. */
        if (told && (!cJSON_IsObject(item) || item->child))
            cleaning->understood = false;
        if (told)
            continue;
        json_key(cleaning->writer, item->string);
        clean(cleaning, item->string, item);
    }
    json_end_object(cleaning->writer);
}

static void clean(struct cleaning *cleaning, const char *key, const cJSON *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        if (strcasecmp(key, places[i].key) != 0 || cJSON_IsNull(value))
            continue;
        if (places[i].list)
            clean_list(cleaning, value, places[i].clean);
        else
            places[i].clean(cleaning, value);
        return;
    }
    if (cJSON_IsObject(value))
        clean_members(cleaning, value);
    else if (cJSON_IsArray(value))
        clean_list(cleaning, value, NULL);
    else
        json_value(cleaning->writer, value);
}

static bool clean_whole(struct json_writer *writer, struct json_arena *arena, const cJSON *body)
{
    struct cleaning cleaning = {arena, writer, true};

    clean(&cleaning, "", body);
    return cleaning.understood;
}

/* Keys are nodes' names there, and it is not sure that they name no place. */
static bool clean_preemption(struct json_writer *writer, struct json_arena *arena,
                             const cJSON *body)
{
    struct preemption_args args;

    if (!preemption_args_decode(arena, body, &args, NULL))
        return false;
    preemption_args_encode(writer, &args);
    return true;
}

/* Of UIDs and numbers. */
static bool copy_whole(struct json_writer *writer, struct json_arena *arena, const cJSON *reply)
{
    json_value(writer, reply);
    return true;
}

static const struct {
    bool (*body)(struct json_writer *writer, struct json_arena *arena, const cJSON *body);
    bool (*reply)(struct json_writer *writer, struct json_arena *arena, const cJSON *reply);
} verbs[VERB_N] = {
    [VERB_FILTER] = {clean_whole, clean_whole},
    [VERB_PRIORITIZE] = {clean_whole, clean_whole},
    [VERB_PREEMPT] = {clean_preemption, copy_whole},
};

bool record_body_encode(struct json_writer *writer, enum verb verb, const GString *body)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *tree = json_parse(arena, body->str, body->len, NULL);

    return tree && verbs[verb].body(writer, arena, tree);
}

bool record_reply_encode(struct json_writer *writer, enum verb verb, const GString *reply)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *tree = json_parse(arena, reply->str, reply->len, NULL);

    return tree && verbs[verb].reply(writer, arena, tree);
}

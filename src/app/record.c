/* SPDX-License-Identifier: Apache-2.0 */
#include "app/record.h"

#include "app/booking.h"

#include <string.h>
#include <strings.h>

const char *const record_kinds[RECORD_KIND_N] = {
    [RECORD_LIST_BEGIN] = "list-begin",
    [RECORD_LIST_END] = "list-end",
    [RECORD_NODE] = "node",
    [RECORD_NODE_GONE] = "node-gone",
    [RECORD_POD] = "pod",
    [RECORD_POD_GONE] = "pod-gone",
    [RECORD_SETTLE] = "settle",
    [RECORD_CONFIGMAP] = "configmap",
    [RECORD_CONFIGMAP_GONE] = "configmap-gone",
    [RECORD_RESOURCE_QUOTA] = "resourcequota",
    [RECORD_RESOURCE_QUOTA_GONE] = "resourcequota-gone",
    [RECORD_POLICY] = "policy",
    [RECORD_CALL] = "call",
    [RECORD_LOOK] = "look",
    [RECORD_CONCLUDE] = "conclude",
    [RECORD_DROP] = "drop",
    [RECORD_INHERIT] = "inherit",
    [RECORD_BOOKING] = "booking",
    [RECORD_LOST] = "lost",
    [RECORD_HEADER] = "header",
    [RECORD_END] = "end",
};

const char *const record_feeds[FEED_N] = {"nodes", "pods", "configmaps",
                                          "poddisruptionbudgets", "resourcequotas"};

const char *const record_steps[GRANT_STEP_N] = {
    [GRANT_SEND] = "send",
    [GRANT_DONE] = "done",
    [GRANT_FETCH] = "ask-for-pod",
    [GRANT_WAIT_NODE] = "wait-for-node-side",
    [GRANT_WAIT_BIND] = "wait-for-bind",
    [GRANT_FAILED] = "refuse",
};

/* --- lines ---------------------------------------------------------------------------------- */

void record_free(struct record *record)
{
    if (!record)
        return;
    if (record->text)
        g_string_free(record->text, TRUE);
    if (record->body)
        g_string_free(record->body, TRUE);
    if (record->reply)
        g_string_free(record->reply, TRUE);
    g_free(record->key);
    g_free(record);
}

static struct record *begin(enum record_kind kind, uint64_t number, struct json_writer *writer)
{
    struct record *record = g_new0(struct record, 1);

    record->kind = kind;
    record->number = number;
    record->text = g_string_sized_new(256);
    json_writer_init(writer, record->text);
    json_begin_object(writer);
    json_key_int(writer, "n", (int64_t)number);
    json_key_string(writer, "kind", record_kinds[kind]);
    return record;
}

static void begin_object(struct record *record, struct json_writer *writer, const char *key)
{
    json_key(writer, key);
    record->object_at = record->text->len;
}

static void write_moment(struct json_writer *writer, const struct moment *moment)
{
    g_autofree char *at = g_strdup_printf("%" G_GINT64_FORMAT, moment->now_ns);

    json_key_string(writer, "at", at);
    json_key_int(writer, "ms", moment->now_ms);
}

struct record *record_list(enum record_kind kind, uint64_t number, enum feed feed)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(kind, number, &writer);
    record->feed = feed;
    json_key_string(&writer, "feed", record_feeds[feed]);
    json_end_object(&writer);
    return record;
}

struct record *record_pod(uint64_t number, const struct pod_view *pod)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_POD, number, &writer);
    record->key = g_strdup(pod->uid);
    record->pending = !pod_view_is_bound(pod);
    begin_object(record, &writer, "object");
    pod_view_encode(&writer, pod);
    json_end_object(&writer);
    return record;
}

struct record *record_settle(uint64_t number, const struct pod_view *pod, bool confirmed)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_SETTLE, number, &writer);
    record->key = g_strdup(pod->uid);
    record->confirmed = confirmed;
    json_key_bool(&writer, "confirmed", confirmed);
    begin_object(record, &writer, "object");
    pod_view_encode(&writer, pod);
    json_end_object(&writer);
    return record;
}

struct record *record_node(uint64_t number, const struct node_view *node)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_NODE, number, &writer);
    record->key = g_strdup(node->name);
    begin_object(record, &writer, "object");
    node_view_encode(&writer, node);
    json_end_object(&writer);
    return record;
}

struct record *record_configmap(uint64_t number, const struct configmap_view *configmap, bool gone)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record =
        begin(gone ? RECORD_CONFIGMAP_GONE : RECORD_CONFIGMAP, number, &writer);
    record->key = g_strdup_printf("%s/%s", configmap->ns, configmap->name);
    begin_object(record, &writer, "object");
    configmap_view_encode(&writer, configmap);
    json_end_object(&writer);
    return record;
}

struct record *record_resource_quota(uint64_t number, const struct resource_quota_view *quota,
                                     bool gone)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record =
        begin(gone ? RECORD_RESOURCE_QUOTA_GONE : RECORD_RESOURCE_QUOTA, number, &writer);
    record->key = g_strdup_printf("%s/%s", quota->ns, quota->name);
    begin_object(record, &writer, "object");
    resource_quota_view_encode(&writer, quota);
    json_end_object(&writer);
    return record;
}

struct record *record_gone(enum record_kind kind, uint64_t number, const char *key)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(kind, number, &writer);
    record->key = g_strdup(key);
    json_key_string(&writer, "key", key);
    json_end_object(&writer);
    return record;
}

struct record *record_policy(uint64_t number, const char *policy, int64_t patience_ms)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_POLICY, number, &writer);
    json_key_string(&writer, "policy", policy);
    json_key_int(&writer, "patience", patience_ms);
    json_end_object(&writer);
    return record;
}

struct record *record_call(const struct call *call, const GString *reply)
{
    struct json_writer writer;

    if (call->moment.number == 0)
        return NULL;
    struct record *record = begin(RECORD_CALL, call->moment.number, &writer);
    json_key_string(&writer, "verb", metrics_verb(call->verb));
    json_key_int(&writer, "entry", call->entry);
    write_moment(&writer, &call->moment);
    record->body = g_string_new_len(call->body, (gssize)call->length);
    record->reply = g_string_new_len(reply->str, (gssize)reply->len);
    return record;
}

/* --- binds ---------------------------------------------------------------------------------- */

void record_answer_encode(struct json_writer *writer, const struct grant *grant,
                          enum grant_step step, const GError *failure)
{
    json_begin_object(writer);
    json_key_string(writer, "step", record_steps[step]);
    if (failure)
        json_key_string(writer, "error", failure->message);
    if (step == GRANT_SEND || step == GRANT_DONE)
        json_key_int(writer, "card", grant->card);
    if (step == GRANT_SEND) {
        json_key_string(writer, "dialect", grant->dialect->name);
        json_key(writer, "annotations");
        json_begin_object(writer);
        for (size_t i = 0; i < grant->annotations.n; i++)
            json_key_string(writer, grant->annotations.items[i].key,
                            grant->annotations.items[i].value);
        json_end_object(writer);
    }
    json_end_object(writer);
}

struct record *record_look(const struct moment *moment, const struct grant *grant,
                           enum grant_step step, const struct ledger *ledger,
                           const GError *failure)
{
    const struct bind_args *args = grant->args;
    struct json_writer writer;

    if (moment->number == 0)
        return NULL;
    struct record *record = begin(RECORD_LOOK, moment->number, &writer);
    record->key = g_strdup(args->pod_uid);
    record->result = step == GRANT_SEND ? BIND_RESULT_BOUND : BIND_RESULT_REFUSED;
    json_key_int(&writer, "call", (int64_t)grant->call);
    write_moment(&writer, moment);
    json_key_int(&writer, "until", grant->send_until_ms);
    json_key_string(&writer, "namespace", args->pod_namespace);
    json_key_string(&writer, "name", args->pod_name);
    json_key_string(&writer, "uid", args->pod_uid);
    json_key_string(&writer, "node", args->node);
    if (grant->asks) {
        json_key(&writer, "asks");
        json_raw(&writer, grant->asks->str, grant->asks->len);
    }
    json_key(&writer, "answer");
    record_answer_encode(&writer, grant, step, failure);
    if (step == GRANT_SEND) {
        begin_object(record, &writer, "booking");
        booking_encode(&writer, ledger_get(ledger, args->pod_uid));
    }
    json_end_object(&writer);
    return record;
}

GString *record_asks(const struct pod_view *pod)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    pod_view_encode(&writer, pod);
    return text;
}

struct record *record_conclude(const struct moment *moment, const char *uid,
                               enum bind_result result)
{
    struct json_writer writer;

    if (moment->number == 0)
        return NULL;
    struct record *record = begin(RECORD_CONCLUDE, moment->number, &writer);
    record->key = g_strdup(uid);
    record->result = result;
    json_key_int(&writer, "ms", moment->now_ms);
    json_key_string(&writer, "key", uid);
    json_key_string(&writer, "result", bind_result_names[result]);
    json_end_object(&writer);
    return record;
}

struct record *record_inherit(uint64_t number, const char *uid, const char *booking)
{
    struct json_writer writer;

    if (number == 0)
        return NULL;
    struct record *record = begin(RECORD_INHERIT, number, &writer);
    record->key = g_strdup(uid);
    begin_object(record, &writer, "booking");
    json_raw(&writer, booking, strlen(booking));
    json_end_object(&writer);
    return record;
}

/* --- bodies --------------------------------------------------------------------------------- */

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

bool record_body_encode(struct json_writer *writer, const char *text, size_t length)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct cleaning cleaning = {arena, writer, true};
    const cJSON *body = json_parse(arena, text, length, NULL);

    if (!body)
        return false;
    clean(&cleaning, "", body);
    return cleaning.understood;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "record/replay_state.h"

#include "core/fail.h"

static void answer_filter(struct extender *extender, int entry, const GString *body,
                          GString *reply)
{
    extender_filter(extender, body->str, body->len, reply);
}

static void answer_prioritize(struct extender *extender, int entry, const GString *body,
                              GString *reply)
{
    g_autoptr(GError) failure = NULL;

    if (!extender_prioritize(extender, (enum prioritize_pods)entry, body->str, body->len, reply,
                             &failure))
        g_string_assign(reply, "{}");
}

static void answer_preempt(struct extender *extender, int entry, const GString *body,
                           GString *reply)
{
    g_autoptr(GError) failure = NULL;

    if (!extender_preempt(extender, body->str, body->len, reply, &failure))
        g_string_assign(reply, "{}");
}

/* The verbs that a record may hold. */
static void (*const verbs[VERB_N])(struct extender *extender, int entry, const GString *body,
                                   GString *reply) = {
    [VERB_FILTER] = answer_filter,
    [VERB_PRIORITIZE] = answer_prioritize,
    [VERB_PREEMPT] = answer_preempt,
};

/* A member that one object has and the other has not, or otherwise; NULL: none. */
static const char *odd_member(const cJSON *one, const cJSON *other)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, one) {
        const cJSON *same = cJSON_GetObjectItemCaseSensitive(other, item->string);
        if (!same || !cJSON_Compare(item, same, true))
            return item->string;
    }
    return NULL;
}

/* The first node of which two answers say different things; NULL: none. */
static const char *odd_node(const cJSON *one, const cJSON *other)
{
    static const char *const members[] = {"FailedNodes", "FailedAndUnresolvableNodes",
                                          "NodeNameToMetaVictims"};
    const char *node = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(members) && !node; i++) {
        const cJSON *left = cJSON_GetObjectItemCaseSensitive(one, members[i]);
        const cJSON *right = cJSON_GetObjectItemCaseSensitive(other, members[i]);
        node = odd_member(left, right);
        if (!node)
            node = odd_member(right, left);
    }
    return node;
}

/* What preempt has answered last counts as the line says, whatever it would have answered here. */
static bool recall(struct replay *replay, const struct record_line *line, GError **error)
{
    struct store *store = replay->extender.store;
    struct clearing *clearing = NULL;

    if (line->recalled) {
        clearing = clearing_decode(replay->arena, line->recalled, error);
        if (!clearing)
            return fail_within(error, "field 'recalled': ");
    }
    store_lock(store);
    clearings_clear(store_clearings(store));
    if (clearing)
        clearings_put(store_clearings(store), clearing);
    store_unlock(store);
    return true;
}

bool replay_call(struct replay *replay, const struct record_line *line, GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GString) cleaned = g_string_new(NULL);
    struct json_writer writer;
    int verb = 0;

    replay->summary.calls++;
    while (verb < VERB_N && g_strcmp0(line->verb, metrics_verb((enum verb)verb)) != 0)
        verb++;
    if (verb == VERB_N || !verbs[verb])
        return replay_fail(error, "field 'verb': there is none of that name");
    if (line->left_out > 0) {
        replay->summary.unchecked++;
        return true;
    }
    if (!line->body || !line->reply)
        return replay_fail(error, "fields 'body' and 'reply': one is missing");
    json_writer_init(&writer, body);
    json_value(&writer, line->body);
    if (!recall(replay, line, error))
        return false;
    verbs[verb](&replay->extender, (int)line->entry, body, reply);
    if (!replay_is_complete(replay, (enum verb)verb)) {
        replay->summary.unchecked++;
        return true;
    }
    json_writer_init(&writer, cleaned);
    record_reply_encode(&writer, (enum verb)verb, reply);
    g_autofree char *recorded = replay_text_of(line->reply);
    replay->summary.compared++;
    if (g_str_equal(recorded, cleaned->str))
        return true;
    const cJSON *tree = json_parse(replay->arena, cleaned->str, cleaned->len, NULL);
    replay_differ(replay, line, g_strdup(line->verb), recorded, cleaned->str,
                  odd_node(line->reply, tree));
    return true;
}


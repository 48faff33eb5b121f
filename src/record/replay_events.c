/* SPDX-License-Identifier: Apache-2.0 */
#include "record/replay_state.h"
#include "store/kinds/kind.h"
#include "wire/claim_sheet.h"
#include "core/constraints.h"
#include "wire/rejection.h"

static bool find_feed(const struct record_line *line, enum feed *ret_feed, GError **error)
{
    for (int feed = 0; feed < kinds_n; feed++) {
        if (g_strcmp0(line->feed, kinds[feed]->feed) != 0)
            continue;
        *ret_feed = feed;
        return true;
    }
    return replay_fail(error, "field 'feed': there is none of that name");
}

static bool begin_list(struct replay *replay, const struct record_line *line, GError **error)
{
    enum feed feed;

    if (!find_feed(line, &feed, error))
        return false;
    replay->begun[feed] = true;
    store_list_begin(replay->extender.store, feed);
    return true;
}

static bool end_list(struct replay *replay, const struct record_line *line, GError **error)
{
    enum feed feed;

    if (!find_feed(line, &feed, error))
        return false;
    replay->listed[feed] |= replay->begun[feed];
    replay->begun[feed] = false;
    if (line->spared)
        store_list_spare(replay->extender.store, feed);
    store_list_end(replay->extender.store, feed);
    return true;
}

/* In a record of an older format: what counts is not what the annotation says, which cannot be read. */
static void choose_claims(struct replay *replay, const struct record_line *line,
                          struct node_view *node)
{
    struct string_pairs *said = &node->annotations;

    if (!line->claims)
        return;
    struct string_pair *pairs = json_arena_alloc(replay->arena, (said->n + 1) * sizeof *pairs);
    struct string_pairs chosen = {pairs, 0};
    for (size_t i = 0; i < said->n; i++) {
        if (!g_str_equal(said->items[i].key, CLAIM_KEY))
            pairs[chosen.n++] = said->items[i];
    }
    pairs[chosen.n++] = (struct string_pair){CLAIM_KEY, line->claims};
    *said = chosen;
}

static bool apply_node(struct replay *replay, const struct record_line *line, GError **error)
{
    struct node_view node = {0};

    if (!node_view_decode(replay->arena, line->object, &node, error))
        return false;
    choose_claims(replay, line, &node);
    store_set_change(replay->extender.store, line->change_ms);
    store_apply_node(replay->extender.store, &node);
    return true;
}

static bool remove_node(struct replay *replay, const struct record_line *line, GError **error)
{
    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    store_delete_node(replay->extender.store, line->key);
    return true;
}

/* What counts is not what its label says by now. */
static void choose_quota(struct replay *replay, const struct record_line *line,
                         const struct pod_view *pod)
{
    if (line->quota)
        store_choose_quota(replay->extender.store, pod, line->quota);
}

static bool apply_pod(struct replay *replay, const struct record_line *line, GError **error)
{
    struct pod_view pod = {0};

    if (!pod_view_decode(replay->arena, line->object, &pod, error))
        return false;
    /* Of what says where a pod may go only this is kept. */
    static const struct constraints picky = {.overlooked = 1U << OVERLOOKED_SCHEDULING_GATES};
    if (!pod_group_claim(&pod).name) /* of a group's pod all is kept */
        pod.object = NULL;
    pod.constraints = line->picky ? &picky : NULL;
    pod.scheduler_name = line->scheduler;
    store_set_trust(replay->extender.store, record_trust(line->seal));
    store_apply_pod(replay->extender.store, &pod);
    store_set_trust(replay->extender.store, TRUST_ANNOTATIONS);
    choose_quota(replay, line, &pod);
    return true;
}

static bool settle_pod(struct replay *replay, const struct record_line *line, GError **error)
{
    struct store *store = replay->extender.store;
    struct pod_view pod = {0};

    if (!pod_view_decode(replay->arena, line->object, &pod, error))
        return false;
    store_reconcile_pod(store, &pod, line->confirmed ? store_ask(store) : 0);
    choose_quota(replay, line, &pod);
    return true;
}

static bool remove_pod(struct replay *replay, const struct record_line *line, GError **error)
{
    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    (line->kind == OBSERVED_POD_VANISHED ? store_vanish_pod
                                         : store_delete_pod)(replay->extender.store, line->key);
    return true;
}

static bool reject_pod(struct replay *replay, const struct record_line *line, GError **error)
{
    struct rejection rejection = {.refused = line->confirmed};

    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    for (int kind = 0; kind < REJECTION_N; kind++) {
        if (g_strcmp0(line->result, rejection_names[kind]) != 0)
            continue;
        rejection.kind = (enum rejection_kind)kind;
        store_reject_pod(replay->extender.store, line->key, &rejection);
        return true;
    }
    return replay_fail(error, "field 'result': there is none of that name");
}

static bool set_promise(struct replay *replay, const struct record_line *line, GError **error)
{
    struct stray stray;

    if (!stray_decode(replay->arena, line->object, &stray, error))
        return false;
    store_set_promise(replay->extender.store, &stray, true);
    return true;
}

static bool end_promise(struct replay *replay, const struct record_line *line, GError **error)
{
    const struct stray stray = {line->result ? dialect_find(line->result) : NULL, .uid = line->key};

    if (!line->key || !stray.dialect)
        return replay_fail(error, !line->key ? "field 'key': missing"
                                             : "field 'result': there is no dialect of that name");
    store_set_promise(replay->extender.store, &stray, false);
    return true;
}

static bool resume_node(struct replay *replay, const struct record_line *line, GError **error)
{
    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    store_order(replay->extender.store, "resume", line->key);
    return true;
}

static bool apply_object(struct replay *replay, const struct record_line *line, GError **error)
{
    const struct kind *kind = kinds[line->of];
    void *view = json_arena_alloc(replay->arena, kind->size);

    if (!kind->decode(replay->arena, line->object, view, error))
        return false;
    store_apply_object(replay->extender.store, line->of, view);
    return true;
}

static bool remove_object(struct replay *replay, const struct record_line *line, GError **error)
{
    static const struct json_field name_fields[] = {
        JSON_FIELD_STRING(struct object_name, ns, "metadata.namespace", JSON_REQUIRED),
        JSON_FIELD_STRING(struct object_name, name, "metadata.name", JSON_REQUIRED),
        JSON_FIELD_END,
    };
    struct object_name name = {0};

    if (!json_decode(replay->arena, line->object, name_fields, &name, error))
        return false;
    store_remove_object(replay->extender.store, line->of, &name);
    return true;
}

static bool set_policy(struct replay *replay, const struct record_line *line, GError **error)
{
    const struct policy *policy = policy_find(line->policy);

    if (!policy)
        return replay_fail(error, "field 'policy': there is no policy of that name");
    if (replay->options.policy)
        policy = replay->options.policy;
    store_set_policy(replay->extender.store, policy, line->patience_ms);
    return true;
}

/* What is known here, as a record would have it; NULL: it would not. */
static GString *write_known(struct store *store, const struct part_image *image, void *self)
{
    struct json_writer writer;

    store_lock(store);
    void *known = image->begin(self);
    while (known && image->take && image->take(known))
        continue;
    store_unlock(store);
    if (!known)
        return NULL;
    GString *text = g_string_new(NULL);
    json_writer_init(&writer, text);
    image->encode(&writer, known);
    image->free(known);
    return text;
}

/* Without what holds here and of which the record says nothing: older versions did not. */
static char *text_as_recorded(struct replay *replay, const GString *here, const cJSON *recorded)
{
    cJSON *object = (cJSON *)json_parse(replay->arena, here->str, here->len, NULL);

    for (cJSON *item = object->child, *next; item; item = next) {
        next = item->next;
        if (cJSON_IsTrue(item) && !cJSON_GetObjectItemCaseSensitive(recorded, item->string))
            cJSON_DetachItemViaPointer(object, item);
    }
    return replay_text_of(object);
}

/* What is told where a file ends is known here as well. */
static void compare_known(struct replay *replay, const struct record_line *line,
                          const struct part *part)
{
    struct store *store = replay->extender.store;
    void *self = store_part(store, part);

    if (line->number == 0 || !replay->learned || !part->image->compared || !self)
        return;
    g_autoptr(GString) here = write_known(store, part->image, self);
    if (!here)
        return;
    g_autofree char *recorded = replay_text_of(line->object);
    g_autofree char *known = text_as_recorded(replay, here, line->object);
    replay->summary.what_was_learned++;
    replay->summary.compared++;
    if (!g_str_equal(recorded, known))
        replay_differ(replay, line, g_strdup(part->image->compared), recorded, known, NULL);
}

/* After it all is known that decisions go by. */
static bool is_last_compared(size_t place)
{
    if (!parts_table[place]->image->compared)
        return false;
    for (place++; parts_table[place]; place++) {
        if (parts_table[place]->image && parts_table[place]->image->compared)
            return false;
    }
    return true;
}

static bool learn_part(struct replay *replay, const struct record_line *line, GError **error)
{
    const struct part *part = parts_table[line->of];

    compare_known(replay, line, part);
    if (!store_learn_part(replay->extender.store, part, replay->arena, line->object, error))
        return false;
    replay->learned |= is_last_compared(line->of);
    return true;
}

/* What follows from what is known here; it counts from where it was swapped in. */
static bool begin_outlook(struct replay *replay, const struct record_line *line, GError **error)
{
    store_begin_outlook(replay->extender.store, true);
    store_make_outlook(replay->extender.store);
    return true;
}

static bool swap_outlook(struct replay *replay, const struct record_line *line, GError **error)
{
    store_swap_outlook(replay->extender.store);
    return true;
}

/* What comes of it are events of their own: the pod ends, another one is bound. */
static bool pass_over(struct replay *replay, const struct record_line *line, GError **error)
{
    return true;
}

static bool (*const players[RECORD_KIND_N])(struct replay *replay, const struct record_line *line,
                                            GError **error) = {
    [OBSERVED_LIST_BEGIN] = begin_list,
    [OBSERVED_LIST_END] = end_list,
    [OBSERVED_NODE] = apply_node,
    [OBSERVED_NODE_GONE] = remove_node,
    [OBSERVED_POD] = apply_pod,
    [OBSERVED_POD_ENDED] = remove_pod,
    [OBSERVED_POD_VANISHED] = remove_pod,
    [OBSERVED_ASKED_POD] = settle_pod,
    [OBSERVED_PROMISE] = set_promise,
    [OBSERVED_PROMISE_GONE] = end_promise,
    [OBSERVED_POD_REJECTED] = reject_pod,
    [OBSERVED_PART] = learn_part,
    [OBSERVED_RESUME] = resume_node,
    [OBSERVED_OBJECT] = apply_object,
    [OBSERVED_OBJECT_GONE] = remove_object,
    [OBSERVED_POLICY] = set_policy,
    [OBSERVED_OUTLOOK_BEGUN] = begin_outlook,
    [OBSERVED_OUTLOOK] = swap_outlook,
    [OBSERVED_LEDGER] = replay_ledger,
    [OBSERVED_CALL] = replay_call,
    [OBSERVED_LOOK] = replay_look,
    [OBSERVED_CONCLUSION] = replay_booking,
    [OBSERVED_TIME] = replay_booking,
    [OBSERVED_REFUSED] = replay_booking,
    [OBSERVED_DROPPED] = replay_booking,
    [OBSERVED_INHERITED] = replay_booking,
    [OBSERVED_MOVE] = pass_over,
    [OBSERVED_EVICTION] = pass_over,
    [RECORD_BOOKING] = replay_booking,
};

bool replay_event(struct replay *replay, const struct record_line *line, GError **error)
{
    return players[line->kind](replay, line, error);
}

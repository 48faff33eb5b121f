/* SPDX-License-Identifier: Apache-2.0 */
#include "app/replay.h"

#include "app/booking.h"
#include "app/record.h"
#include "app/views.h"

#include <gpuledger/error.h>
#include <string.h>

/* A bind that has looked and may look again. */
struct bind_call {
    struct bind_args args; /* strings are owned */
    struct grant grant;
};

struct replay {
    struct replay_options options;
    struct extender extender; /* its store is NULL before the header */
    struct replay_summary summary;
    GHashTable *binds; /* number of the first look -> struct bind_call * */
    struct json_arena *arena;
    bool begun[FEED_N], listed[FEED_N];
    bool done;
};

/* What a line may hold; see app/record.h. */
struct line {
    int64_t number, format, ms, until_ms, call, state, count, patience_ms, left_out,
        entry;
    const char *kind, *feed, *key, *verb, *at, *ns, *name, *uid, *node, *result, *policy, *version,
        *commit;
    bool confirmed;
    const cJSON *object, *body, *reply, *asks, *answer, *booking, *options;
    struct moment moment;
};

#define LINE(KIND, member, path) JSON_FIELD_##KIND(struct line, member, path, 0)
static const struct json_field line_fields[] = {
    LINE(INT64, number, "n"),
    JSON_FIELD_STRING(struct line, kind, "kind", JSON_REQUIRED),
    LINE(INT64, format, "format"),
    LINE(INT64, ms, "ms"),
    LINE(INT64, until_ms, "until"),
    LINE(INT64, call, "call"),
    LINE(INT64, state, "state"),
    LINE(INT64, count, "count"),
    LINE(INT64, patience_ms, "patience"),
    LINE(INT64, left_out, "left-out"),
    LINE(INT64, entry, "entry"),
    LINE(STRING, feed, "feed"),
    LINE(STRING, key, "key"),
    LINE(STRING, verb, "verb"),
    LINE(STRING, at, "at"),
    LINE(STRING, ns, "namespace"),
    LINE(STRING, name, "name"),
    LINE(STRING, uid, "uid"),
    LINE(STRING, node, "node"),
    LINE(STRING, result, "result"),
    LINE(STRING, policy, "policy"),
    LINE(STRING, version, "version"),
    LINE(STRING, commit, "commit"),
    LINE(BOOL, confirmed, "confirmed"),
    LINE(OBJECT, object, "object"),
    LINE(OBJECT, body, "body"),
    LINE(OBJECT, asks, "asks"),
    LINE(OBJECT, answer, "answer"),
    LINE(OBJECT, booking, "booking"),
    LINE(OBJECT, options, "options"),
    JSON_FIELD_END,
};

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

/* The verbs that a record may hold. */
static void (*const verbs[VERB_N])(struct extender *extender, int entry, const GString *body,
                                   GString *reply) = {
    [VERB_FILTER] = answer_filter,
    [VERB_PRIORITIZE] = answer_prioritize,
};

static bool bad(GError **error, const char *what)
{
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, what);
    return false;
}

/* --- differences ---------------------------------------------------------------------------- */

static char *text_of(const cJSON *value)
{
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_value(&writer, value);
    return g_string_free(text, FALSE);
}

static bool is_complete(const struct replay *replay)
{
    bool complete = true;

    for (int feed = 0; feed < FEED_BUDGETS; feed++) /* no decision that is recorded needs those */
        complete &= replay->listed[feed];
    return complete;
}

/* `take_what` and `node` (NULL: none) say what it is about; the ledger is as the decision saw it. */
static void differ(struct replay *replay, const struct line *line, char *take_what,
                   const char *recorded, const char *replayed, const char *node)
{
    struct replay_difference *difference = &replay->summary.difference;
    g_autoptr(GString) ledger = g_string_new(NULL);

    replay->summary.different++;
    if (difference->what) {
        g_free(take_what);
        return;
    }
    if (node)
        view_nodes_table(replay->extender.store, node, ledger);
    *difference = (struct replay_difference){
        .number = (uint64_t)line->number,
        .line = replay->summary.lines,
        .what = take_what,
        .recorded = g_strdup(recorded),
        .replayed = g_strdup(replayed),
        .ledger = g_string_free(g_steal_pointer(&ledger), FALSE),
    };
}

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

/* The first node of which two answers of filter say different things; NULL: none. */
static const char *odd_node(const cJSON *one, const cJSON *other)
{
    static const char *const members[] = {"FailedNodes", "FailedAndUnresolvableNodes"};
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

/* --- events --------------------------------------------------------------------------------- */

static bool find_feed(const struct line *line, enum feed *ret_feed, GError **error)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        if (g_strcmp0(line->feed, record_feeds[feed]) != 0)
            continue;
        *ret_feed = feed;
        return true;
    }
    return bad(error, "field 'feed': there is none of that name");
}

static bool begin_list(struct replay *replay, struct line *line, GError **error)
{
    enum feed feed;

    if (!find_feed(line, &feed, error))
        return false;
    replay->begun[feed] = true;
    store_list_begin(replay->extender.store, feed);
    return true;
}

static bool end_list(struct replay *replay, struct line *line, GError **error)
{
    enum feed feed;

    if (!find_feed(line, &feed, error))
        return false;
    replay->listed[feed] |= replay->begun[feed];
    replay->begun[feed] = false;
    store_list_end(replay->extender.store, feed);
    return true;
}

static bool apply_node(struct replay *replay, struct line *line, GError **error)
{
    struct node_view node = {0};

    if (!node_view_decode(replay->arena, line->object, &node, error))
        return false;
    store_apply_node(replay->extender.store, &node);
    return true;
}

static bool remove_node(struct replay *replay, struct line *line, GError **error)
{
    if (!line->key)
        return bad(error, "field 'key': missing");
    store_delete_node(replay->extender.store, line->key);
    return true;
}

static bool apply_pod(struct replay *replay, struct line *line, GError **error)
{
    struct pod_view pod = {0};

    if (!pod_view_decode(replay->arena, line->object, &pod, error))
        return false;
    store_apply_pod(replay->extender.store, &pod);
    return true;
}

static bool settle_pod(struct replay *replay, struct line *line, GError **error)
{
    struct store *store = replay->extender.store;
    struct pod_view pod = {0};

    if (!pod_view_decode(replay->arena, line->object, &pod, error))
        return false;
    store_settle_pod(store, &pod, line->confirmed ? store_ask(store) : 0);
    return true;
}

static bool remove_pod(struct replay *replay, struct line *line, GError **error)
{
    if (!line->key)
        return bad(error, "field 'key': missing");
    store_delete_pod(replay->extender.store, line->key);
    return true;
}

static bool apply_configmap(struct replay *replay, struct line *line, GError **error)
{
    struct configmap_view configmap = {0};

    if (!configmap_view_decode(replay->arena, line->object, &configmap, error))
        return false;
    store_apply_configmap(replay->extender.store, &configmap);
    return true;
}

static bool remove_configmap(struct replay *replay, struct line *line, GError **error)
{
    struct configmap_view configmap = {0};

    if (!configmap_view_decode(replay->arena, line->object, &configmap, error))
        return false;
    store_delete_configmap(replay->extender.store, &configmap);
    return true;
}

static bool set_policy(struct replay *replay, struct line *line, GError **error)
{
    const struct policy *policy = policy_find(line->policy);

    if (!policy)
        return bad(error, "field 'policy': there is no policy of that name");
    if (replay->options.policy)
        policy = replay->options.policy;
    store_set_policy(replay->extender.store, policy, line->patience_ms);
    return true;
}

/* --- bookings ------------------------------------------------------------------------------- */

/* Under the lock: puts a recorded booking, with what only the pod's request tells. */
static bool put_booking(struct replay *replay, struct line *line, const struct request *request,
                        enum allocation_state state, GError **error)
{
    struct ledger *ledger = store_ledger(replay->extender.store);
    const char *node;
    struct allocation *booking = booking_decode(replay->arena, line->booking, &node);

    if (!booking)
        return bad(error, "field 'booking': it cannot be understood");
    while (request && request->dialect != booking->dialect)
        request = request->alternative;
    if (request) {
        terms_unref(booking->terms);
        booking->terms = terms_ref(request->terms);
        booking->host = request->host;
    }
    booking->state = state;
    booking->since_ms = line->ms;
    ledger_drop(ledger, booking->uid);
    ledger_put(ledger, node, booking);
    return true;
}

static bool know_booking(struct replay *replay, struct line *line, GError **error)
{
    struct store *store = replay->extender.store;
    const cJSON *uid = cJSON_GetObjectItemCaseSensitive(line->booking, "uid");

    if (line->state < 0 || line->state > ALLOCATION_CONFIRMED || !cJSON_IsString(uid))
        return bad(error, "field 'booking': it cannot be understood");
    store_lock(store);
    const bool known = put_booking(replay, line, store_pending(store, uid->valuestring),
                                   (enum allocation_state)line->state, error);
    store_unlock(store);
    return known;
}

static bool inherit_booking(struct replay *replay, struct line *line, GError **error)
{
    store_lock(replay->extender.store);
    const bool known = put_booking(replay, line, NULL, ALLOCATION_UNKNOWN, error);
    store_unlock(replay->extender.store);
    return known;
}

static bool drop_booking(struct replay *replay, struct line *line, GError **error)
{
    if (!line->key)
        return bad(error, "field 'key': missing");
    ledger_drop(store_lock(replay->extender.store), line->key);
    store_unlock(replay->extender.store);
    return true;
}

static bool conclude(struct replay *replay, struct line *line, GError **error)
{
    if (!line->key)
        return bad(error, "field 'key': missing");
    for (int result = 0; result < BIND_RESULT_N; result++) {
        if (g_strcmp0(line->result, bind_result_names[result]) != 0)
            continue;
        grant_conclude(store_lock(replay->extender.store), line->key, (enum bind_result)result,
                       &line->moment);
        store_unlock(replay->extender.store);
        return true;
    }
    return bad(error, "field 'result': there is none of that name");
}

static void collect_open(struct allocation *allocation, void *data)
{
    if (allocation->state != ALLOCATION_CONFIRMED)
        g_ptr_array_add(data, g_strdup(allocation->uid));
}

/* What is known counts for a guess until the next lists. */
static bool lose(struct replay *replay, struct line *line, GError **error)
{
    g_autoptr(GPtrArray) open = g_ptr_array_new_with_free_func(g_free);
    struct ledger *ledger = store_lock(replay->extender.store);

    ledger_each(ledger, collect_open, open);
    for (guint i = 0; i < open->len; i++)
        ledger_drop(ledger, open->pdata[i]);
    store_unlock(replay->extender.store);
    memset(replay->begun, 0, sizeof replay->begun);
    memset(replay->listed, 0, sizeof replay->listed);
    replay->summary.lost += (uint64_t)MAX(line->count, 0);
    return true;
}

/* --- decisions ------------------------------------------------------------------------------ */

static bool repeat_call(struct replay *replay, struct line *line, GError **error)
{
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    g_autoptr(GString) cleaned = g_string_new(NULL);
    struct json_writer writer;
    int verb = 0;

    replay->summary.calls++;
    while (verb < VERB_N && g_strcmp0(line->verb, metrics_verb((enum verb)verb)) != 0)
        verb++;
    if (verb == VERB_N || !verbs[verb])
        return bad(error, "field 'verb': there is none of that name");
    if (line->left_out > 0) {
        replay->summary.unchecked++;
        return true;
    }
    if (!line->body || !line->reply)
        return bad(error, "fields 'body' and 'reply': one is missing");
    json_writer_init(&writer, body);
    json_value(&writer, line->body);
    verbs[verb](&replay->extender, (int)line->entry, body, reply);
    if (!is_complete(replay)) {
        replay->summary.unchecked++;
        return true;
    }
    json_writer_init(&writer, cleaned);
    record_body_encode(&writer, reply->str, reply->len);
    g_autofree char *recorded = text_of(line->reply);
    replay->summary.compared++;
    if (g_str_equal(recorded, cleaned->str))
        return true;
    const cJSON *tree = json_parse(replay->arena, cleaned->str, cleaned->len, NULL);
    differ(replay, line, g_strdup(line->verb), recorded, cleaned->str,
           odd_node(line->reply, tree));
    return true;
}

static void bind_call_free(gpointer data)
{
    struct bind_call *call = data;

    grant_clear(&call->grant);
    g_free((char *)call->args.pod_name);
    g_free((char *)call->args.pod_namespace);
    g_free((char *)call->args.pod_uid);
    g_free((char *)call->args.node);
    g_free(call);
}

static struct bind_call *find_bind(struct replay *replay, const struct line *line)
{
    struct bind_call *call = g_hash_table_lookup(replay->binds, &line->call);

    if (!call) {
        call = g_new0(struct bind_call, 1);
        call->args = (struct bind_args){
            .pod_name = g_strdup(line->name),
            .pod_namespace = g_strdup(line->ns),
            .pod_uid = g_strdup(line->uid),
            .node = g_strdup(line->node),
        };
        call->grant.args = &call->args;
        call->grant.card = CARD_UNKNOWN;
        g_hash_table_insert(replay->binds, g_memdup2(&line->call, sizeof line->call), call);
    }
    call->grant.send_until_ms = line->until_ms;
    return call;
}

static bool read_asks(struct replay *replay, const struct line *line, struct grant *grant,
                      GError **error)
{
    const struct store_options *options = store_options(replay->extender.store);
    struct pod_view pod = {0};

    if (!line->asks || grant->request)
        return true;
    if (!pod_view_decode(replay->arena, line->asks, &pod, error))
        return false;
    grant->request = dialect_read_request(&pod, &options->dialects, error);
    grant->priority = pod.priority;
    if (!grant->request && !*error)
        return bad(error, "field 'asks': the pod asks for no GPU");
    return grant->request != NULL;
}

/* Under the lock: makes the ledger what it was before the look. */
static void undo(struct ledger *ledger, const char *uid, enum grant_step step, bool was_held)
{
    struct allocation *held = ledger_get(ledger, uid);

    if (step != GRANT_SEND || !held)
        return;
    if (was_held)
        held->state = ALLOCATION_UNKNOWN;
    else
        ledger_drop(ledger, uid);
}

/* A bind keeps what its pod asks for while it waits, and the pod may go meanwhile. If the file that
 * said what it asks for has ended as well, nobody knows. */
static bool is_orphan(const struct replay *replay, const struct line *line,
                      const struct grant *grant)
{
    struct store *store = replay->extender.store;
    struct ledger *ledger = store_lock(store);
    const bool orphan = !grant->request && line->call != line->number &&
                        !ledger_get(ledger, line->uid) && !store_pending(store, line->uid);

    store_unlock(store);
    return orphan;
}

static bool has_ended(const struct line *line)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(line->answer, "step");
    const char *step = cJSON_IsString(said) ? said->valuestring : "";

    return !g_str_equal(step, record_steps[GRANT_WAIT_NODE]) &&
           !g_str_equal(step, record_steps[GRANT_WAIT_BIND]);
}

/* What was decided is taken as it was recorded. */
static bool adopt_look(struct replay *replay, struct line *line, const struct request *request,
                       GError **error)
{
    store_lock(replay->extender.store);
    const bool usable = !line->booking ||
                        put_booking(replay, line, request, ALLOCATION_RESERVED, error);
    store_unlock(replay->extender.store);
    return usable;
}

static bool repeat_look(struct replay *replay, struct line *line, GError **error)
{
    struct store *store = replay->extender.store;
    g_autoptr(GString) replayed = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct json_writer writer;
    bool usable = true;

    if (!line->ns || !line->name || !line->uid || !line->node || !line->answer)
        return bad(error, "a field of the bind is missing");
    replay->summary.looks++;
    struct bind_call *call = find_bind(replay, line);
    if (!read_asks(replay, line, &call->grant, error))
        return false;
    if (is_orphan(replay, line, &call->grant)) {
        replay->summary.orphans++;
        if (has_ended(line))
            g_hash_table_remove(replay->binds, &line->call);
        return adopt_look(replay, line, NULL, error);
    }

    struct ledger *ledger = store_lock(store);
    const bool was_held = ledger_get(ledger, line->uid) != NULL;
    const enum grant_step step =
        grant_look(&call->grant, store, ledger, &line->moment, &failure);
    json_writer_init(&writer, replayed);
    record_answer_encode(&writer, &call->grant, step, failure);
    g_autofree char *recorded = text_of(line->answer);
    const bool equal = g_str_equal(recorded, replayed->str);
    if (!equal)
        undo(ledger, line->uid, step, was_held);
    store_unlock(store);

    replay->summary.compared += is_complete(replay);
    replay->summary.unchecked += !is_complete(replay);
    if (!equal && is_complete(replay))
        differ(replay, line,
               g_strdup_printf("bind of %s/%s to %s", line->ns, line->name, line->node), recorded,
               replayed->str, line->node);
    if (!equal)
        usable = adopt_look(replay, line, call->grant.request, error);
    if (has_ended(line))
        g_hash_table_remove(replay->binds, &line->call);
    return usable;
}

/* --- lines ---------------------------------------------------------------------------------- */

static bool read_header(struct replay *replay, struct line *line, GError **error)
{
    struct store_options options = {0};

    if (replay->extender.store)
        return bad(error, "a second header: each file is played by itself");
    if (line->format != RECORD_FORMAT) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "format %" G_GINT64_FORMAT " is not understood, only %d is; use the version "
                    "that recorded it ('%s')",
                    line->format, RECORD_FORMAT, line->version ? line->version : "unknown");
        return false;
    }
    if (!line->options)
        return bad(error, "field 'options': missing");
    if (!replay->options.configure(replay->options.data, line->options, &options,
                                   &replay->extender, error))
        return false;
    if (replay->options.policy)
        options.policy = replay->options.policy;
    options.silent = true;
    replay->extender.store = store_new(&options);
    replay->summary.version = g_strdup(line->version ? line->version : "");
    replay->summary.commit = g_strdup(line->commit ? line->commit : "");
    return true;
}

static bool note_end(struct replay *replay, struct line *line, GError **error)
{
    replay->summary.ended = true;
    return true;
}

static const struct {
    bool (*play)(struct replay *replay, struct line *line, GError **error);
    bool is_event, has_object, has_booking;
} kinds[RECORD_KIND_N] = {
    [RECORD_LIST_BEGIN] = {begin_list, .is_event = true},
    [RECORD_LIST_END] = {end_list, .is_event = true},
    [RECORD_NODE] = {apply_node, .is_event = true, .has_object = true},
    [RECORD_NODE_GONE] = {remove_node, .is_event = true},
    [RECORD_POD] = {apply_pod, .is_event = true, .has_object = true},
    [RECORD_POD_GONE] = {remove_pod, .is_event = true},
    [RECORD_SETTLE] = {settle_pod, .is_event = true, .has_object = true},
    [RECORD_CONFIGMAP] = {apply_configmap, .is_event = true, .has_object = true},
    [RECORD_CONFIGMAP_GONE] = {remove_configmap, .is_event = true, .has_object = true},
    [RECORD_POLICY] = {set_policy, .is_event = true},
    [RECORD_CALL] = {repeat_call},
    [RECORD_LOOK] = {repeat_look},
    [RECORD_CONCLUDE] = {conclude, .is_event = true},
    [RECORD_DROP] = {drop_booking, .is_event = true},
    [RECORD_INHERIT] = {inherit_booking, .is_event = true, .has_booking = true},
    [RECORD_BOOKING] = {know_booking, .is_event = true, .has_booking = true},
    [RECORD_LOST] = {lose},
    [RECORD_HEADER] = {read_header},
    [RECORD_END] = {note_end},
};

/* Numbers follow each other; lines of what was known before have none. */
static bool check_number(struct replay *replay, const struct line *line, enum record_kind kind,
                         GError **error)
{
    struct replay_summary *summary = &replay->summary;
    const uint64_t number = (uint64_t)line->number;

    if (line->number == 0 || kind == RECORD_LOST)
        return true;
    if (line->number < 0 || (summary->last != 0 && number != summary->last + 1)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "number %" G_GINT64_FORMAT " where %" G_GUINT64_FORMAT " was expected",
                    line->number, summary->last + 1);
        return false;
    }
    if (replay->options.until != 0 && number > replay->options.until) {
        replay->done = true;
        return true;
    }
    if (summary->first == 0)
        summary->first = number;
    summary->last = number;
    return true;
}

static bool read_moment(struct line *line, GError **error)
{
    line->moment.now_ms = line->ms;
    if (line->at && !g_ascii_string_to_signed(line->at, 10, 0, G_MAXINT64, &line->moment.now_ns, NULL))
        return bad(error, "field 'at': expected a number of nanoseconds");
    return true;
}

bool replay_line(struct replay *replay, const char *text, size_t length, GError **error)
{
    struct line line = {0};
    int kind = 0;

    replay->summary.lines++;
    json_arena_clear(replay->arena);
    const cJSON *tree = json_parse(replay->arena, text, length, error);
    if (!tree || !json_decode(replay->arena, tree, line_fields, &line, error))
        return false;
    line.reply = cJSON_GetObjectItemCaseSensitive(tree, "reply");
    while (kind < RECORD_KIND_N && !g_str_equal(line.kind, record_kinds[kind]))
        kind++;
    if (kind == RECORD_KIND_N)
        return bad(error, "field 'kind': there is none of that name");
    if (!replay->extender.store && kind != RECORD_HEADER)
        return bad(error, "a record begins with a header");
    if ((kinds[kind].has_object && !line.object) || (kinds[kind].has_booking && !line.booking))
        return bad(error, "field 'object' or 'booking': missing");
    if (!read_moment(&line, error) ||
        !check_number(replay, &line, (enum record_kind)kind, error))
        return false;
    if (replay->done)
        return true;
    if (replay->extender.store)
        store_set_moment(replay->extender.store, &line.moment);
    replay->summary.events += kinds[kind].is_event;
    const bool played = kinds[kind].play(replay, &line, error);
    if (replay->extender.store)
        store_set_moment(replay->extender.store, NULL);
    return played;
}

bool replay_is_done(const struct replay *replay)
{
    return replay->done;
}

const struct replay_summary *replay_summary(const struct replay *replay)
{
    return &replay->summary;
}

struct store *replay_store(struct replay *replay)
{
    return replay->extender.store;
}

struct replay *replay_new(const struct replay_options *options)
{
    struct replay *replay = g_new0(struct replay, 1);

    replay->options = *options;
    replay->arena = json_arena_new();
    replay->binds = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, bind_call_free);
    return replay;
}

void replay_free(struct replay *replay)
{
    struct replay_summary *summary = &replay->summary;

    g_hash_table_unref(replay->binds);
    store_free(replay->extender.store);
    json_arena_free(replay->arena);
    g_free(summary->version);
    g_free(summary->commit);
    g_free(summary->difference.what);
    g_free(summary->difference.recorded);
    g_free(summary->difference.replayed);
    g_free(summary->difference.ledger);
    g_free(replay);
}

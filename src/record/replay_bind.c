/* SPDX-License-Identifier: Apache-2.0 */
#include "record/replay_state.h"

/* A bind that has looked and may look again. */
struct bind_call {
    struct bind_args args; /* strings are owned */
    struct attempt attempt;
};

static void bind_call_free(gpointer data)
{
    struct bind_call *call = data;

    attempt_clear(&call->attempt);
    g_free((char *)call->args.pod_name);
    g_free((char *)call->args.pod_namespace);
    g_free((char *)call->args.pod_uid);
    g_free((char *)call->args.node);
    g_free(call);
}

GHashTable *replay_binds_new(void)
{
    return g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, bind_call_free);
}

static struct bind_call *find_bind(struct replay *replay, const struct record_line *line)
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
        call->attempt.args = &call->args;
        call->attempt.card = CARD_UNKNOWN;
        g_hash_table_insert(replay->binds, g_memdup2(&line->call, sizeof line->call), call);
    }
    call->attempt.send_until_ms = line->until_ms;
    call->attempt.journal_full =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line->answer, "journal-full"));
    return call;
}

static bool read_asks(struct replay *replay, const struct record_line *line, struct attempt *attempt,
                      GError **error)
{
    const struct store_options *options = store_options(replay->extender.store);
    struct pod_view pod = {0};

    if (!line->asks || attempt->fetched)
        return true;
    if (!pod_view_decode(replay->arena, line->asks, &pod, error))
        return false;
    request_free(attempt->request);
    attempt->request = dialect_read_request(&pod, &options->dialects, error);
    attempt->priority = pod.priority;
    attempt->fetched = attempt->request != NULL;
    if (!attempt->request && !*error)
        return replay_fail(error, "field 'asks': the pod asks for no GPU");
    return attempt->request != NULL;
}

/* Under the lock: makes the ledger what it was before the look. */
static void undo(struct ledger *ledger, const char *uid, enum attempt_step step, bool was_held)
{
    struct allocation *held = ledger_get(ledger, uid);

    if (step != ATTEMPT_SEND || !held)
        return;
    if (was_held)
        ledger_set_state(ledger, held, ALLOCATION_UNKNOWN);
    else
        ledger_drop(ledger, uid);
}

/* A bind keeps what its pod asks for while it waits, and the pod may go meanwhile. If the file that
 * said what it asks for has ended as well, nobody knows. */
static bool is_orphan(const struct replay *replay, const struct record_line *line,
                      const struct attempt *attempt)
{
    struct store *store = replay->extender.store;
    struct moment moment;
    struct ledger *ledger = store_decide_recorded(store, &moment); /* as the look did */
    const bool orphan = !attempt->request && line->call != line->number &&
                        !ledger_get(ledger, line->uid) && !store_pending(store, line->uid);

    store_unlock(store);
    return orphan;
}

static bool has_ended(const struct record_line *line)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(line->answer, "step");
    const char *step = cJSON_IsString(said) ? said->valuestring : "";

    return !g_str_equal(step, record_steps[ATTEMPT_WAIT_NODE]) &&
           !g_str_equal(step, record_steps[ATTEMPT_WAIT_GROUP]) &&
           !g_str_equal(step, record_steps[ATTEMPT_WAIT_BIND]);
}

/* What was decided is taken as it was recorded. */
static bool adopt_look(struct replay *replay, const struct record_line *line,
                       const struct request *request, GError **error)
{
    store_lock(replay->extender.store);
    const bool usable = !line->booking ||
                        replay_put_booking(replay, line, request, ALLOCATION_ASSUMED, error);
    store_unlock(replay->extender.store);
    return usable;
}

bool replay_look(struct replay *replay, const struct record_line *line, GError **error)
{
    struct store *store = replay->extender.store;
    g_autoptr(GString) replayed = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct json_writer writer;
    bool usable = true;

    if (!line->ns || !line->name || !line->uid || !line->node || !line->answer)
        return replay_fail(error, "a field of the bind is missing");
    replay->summary.looks++;
    struct bind_call *call = find_bind(replay, line);
    if (!read_asks(replay, line, &call->attempt, error))
        return false;
    if (is_orphan(replay, line, &call->attempt)) {
        replay->summary.orphans++;
        if (has_ended(line))
            g_hash_table_remove(replay->binds, &line->call);
        return adopt_look(replay, line, NULL, error);
    }

    struct ledger *ledger = store_lock(store);
    const bool was_held = ledger_get(ledger, line->uid) != NULL;
    const enum attempt_step step =
        attempt_look(&call->attempt, store, ledger, &line->moment, &failure);
    json_writer_init(&writer, replayed);
    record_answer_encode(&writer, &call->attempt, step, failure);
    g_autofree char *recorded = replay_text_of(line->answer);
    g_autofree char *booking_recorded = NULL, *booking_here = NULL;
    const bool answered = g_str_equal(recorded, replayed->str);
    const bool equal = answered &&
                       replay_is_booked(replay, line,
                                        step == ATTEMPT_SEND ? ledger_get(ledger, line->uid) : NULL,
                                        &booking_recorded, &booking_here);
    if (!equal)
        undo(ledger, line->uid, step, was_held);
    store_unlock(store);

    replay->summary.compared += replay_is_complete(replay, VERB_BIND);
    replay->summary.unchecked += !replay_is_complete(replay, VERB_BIND);
    if (!equal && replay_is_complete(replay, VERB_BIND))
        replay_differ(replay, line,
                      g_strdup_printf("%s of %s/%s to %s", answered ? "booking" : "bind", line->ns,
                                      line->name, line->node),
                      answered ? booking_recorded : recorded,
                      answered ? booking_here : replayed->str, line->node);
    if (!equal)
        usable = adopt_look(replay, line, call->attempt.request, error);
    if (has_ended(line))
        g_hash_table_remove(replay->binds, &line->call);
    return usable;
}


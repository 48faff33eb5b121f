/* SPDX-License-Identifier: Apache-2.0 */
#include "store/booking.h"
#include "record/replay_state.h"

bool replay_put_booking(struct replay *replay, const struct record_line *line,
                        const struct request *request, enum allocation_state state, GError **error)
{
    struct ledger *ledger = store_ledger(replay->extender.store);
    const char *node;
    struct allocation *booking =
        booking_decode(replay->arena, line->booking,
                       store_options(replay->extender.store)->dialects.classes, &node);

    if (!booking)
        return replay_fail(error, "field 'booking': it cannot be understood");
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
    store_take_turn(replay->extender.store, ledger_put(ledger, node, booking));
    return true;
}

static bool know_booking(struct replay *replay, const struct record_line *line, GError **error)
{
    struct store *store = replay->extender.store;
    const cJSON *uid = cJSON_GetObjectItemCaseSensitive(line->booking, "uid");

    if (line->state < 0 || line->state > ALLOCATION_CONFIRMED || !cJSON_IsString(uid))
        return replay_fail(error, "field 'booking': it cannot be understood");
    store_lock(store);
    const bool known = replay_put_booking(replay, line, store_pending(store, uid->valuestring),
                                          (enum allocation_state)line->state, error);
    store_unlock(store);
    return known;
}

static bool inherit_booking(struct replay *replay, const struct record_line *line, GError **error)
{
    store_lock(replay->extender.store);
    const bool known = replay_put_booking(replay, line, NULL, ALLOCATION_UNKNOWN, error);
    store_unlock(replay->extender.store);
    return known;
}

static bool drop_booking(struct replay *replay, const struct record_line *line, GError **error)
{
    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    ledger_drop(store_lock(replay->extender.store), line->key);
    gangs_settle(store_gangs(replay->extender.store), line->key, false);
    store_unlock(replay->extender.store);
    return true;
}

static bool end_waits(struct replay *replay, const struct record_line *line, GError **error)
{
    store_set_moment(replay->extender.store, &line->moment);
    store_end_waits(replay->extender.store);
    return true;
}

static bool refuse_booking(struct replay *replay, const struct record_line *line, GError **error)
{
    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    store_note_refused(replay->extender.store, line->key);
    return true;
}

static bool conclude(struct replay *replay, const struct record_line *line, GError **error)
{
    if (!line->key)
        return replay_fail(error, "field 'key': missing");
    for (int result = 0; result < BIND_RESULT_N; result++) {
        if (g_strcmp0(line->result, bind_result_names[result]) != 0)
            continue;
        struct moment moment;
        store_decide_recorded(replay->extender.store, &moment);
        attempt_conclude(replay->extender.store, line->key, (enum bind_result)result,
                         &line->moment);
        store_unlock(replay->extender.store);
        return true;
    }
    return replay_fail(error, "field 'result': there is none of that name");
}

static bool (*const players[RECORD_KIND_N])(struct replay *replay, const struct record_line *line,
                                            GError **error) = {
    [OBSERVED_CONCLUSION] = conclude,
    [OBSERVED_DROPPED] = drop_booking,
    [OBSERVED_TIME] = end_waits,
    [OBSERVED_REFUSED] = refuse_booking,
    [OBSERVED_INHERITED] = inherit_booking,
    [RECORD_BOOKING] = know_booking,
};

bool replay_booking(struct replay *replay, const struct record_line *line, GError **error)
{
    return players[line->kind](replay, line, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/metrics.h"
#include "explain/reclaim/reclaim_plan.h"
#include "reclaim/reclaimer_state.h"

/* --- claims that have ended ----------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum reclaim_result result;
} endings[] = {
    [CLAIM_WAITS] = {"what was to be given back is not lent any more", RECLAIM_RESULT_CHANGED},
    [CLAIM_BOUND] = {"the pod has come", RECLAIM_RESULT_BOUND},
    [CLAIM_GONE] = {"the pod is gone", RECLAIM_RESULT_GONE},
    [CLAIM_HALF] = {"a pod of its group is gone", RECLAIM_RESULT_GONE},
    [CLAIM_NODELESS] = {"the node is gone", RECLAIM_RESULT_CHANGED},
    [CLAIM_LAPSED] = {"the pod has not come in time", RECLAIM_RESULT_LAPSED},
    [CLAIM_STALE] = {"the pod has another one", RECLAIM_RESULT_CHANGED},
    [CLAIM_UNSURE] = {"its namespace would have more than its min now", RECLAIM_RESULT_CHANGED},
};

/* A claim that ends, and what its end says of its namespace. */
struct ending {
    const struct reclaimer *reclaimer;
    const struct claim_row *row;
    enum claim_state state;
    bool in_vain; /* pods have ended for it, and it has not come */
    int64_t paused_s;
};

/* Pods have ended for nothing. Another pod of that namespace may be next, or the same under another UID: so the whole
 * namespace waits, longer each time, until one of its claims has served. One at a time counts, of a group. */
static void pause_namespace(struct claim_sheet *sheet, struct ending *ending)
{
    const int64_t now_s = reclaimer_now_s(ending->reclaimer);
    const struct claim_pause *known = g_hash_table_lookup(sheet->pauses, ending->row->claim->ns);
    struct claim_pause pause = {.last_s = pauses_next(known ? known->last_s : 0,
                                                      RECLAIM_BACKOFF_MIN_MS / 1000,
                                                      RECLAIM_BACKOFF_MAX_MS / 1000)};

    ending->paused_s = 0;
    if (known && now_s < known->until_s)
        return;
    pause.until_s = now_s + pause.last_s;
    claim_sheet_pause(sheet, ending->row->claim->ns, &pause);
    ending->paused_s = pause.last_s;
}

static gboolean is_forgiven(gpointer ns, gpointer pause, gpointer data)
{
    return reclaimer_now_s(data) >=
           ((const struct claim_pause *)pause)->until_s + RECLAIM_BACKOFF_MAX_MS / 1000;
}

static bool has_ended_any(const struct reclaimer *reclaimer, const struct claim_row *row)
{
    for (char **uid = row->claim->ends; *uid; uid++) {
        if (reclaimer_ends(reclaimer, *uid))
            return true;
    }
    return row->n_left < g_strv_length(row->claim->ends);
}

/* A budget may have kept these from ending for as long as the claim stood: the next one names others if it can. */
static void pass_over(struct reclaimer *reclaimer, const struct claim_row *row)
{
    for (char **uid = row->claim->ends; *uid; uid++)
        reclaimer_set_time(reclaimer->stays, *uid, reclaimer->now_ms + RECLAIM_STAYS_MS);
}

static void tell_lapsed(struct reclaimer *reclaimer, const struct claim_row *row)
{
    struct memory *memory = reclaimer_remember(reclaimer, row->claim->uid);
    const char *ns = row->claim->ns;
    g_autofree char *note = NULL;

    memory->lapsed = true;
    pauses_begin(reclaimer->pauses, ns, memory->controller, reclaimer->now_ms);
    pass_over(reclaimer, row);
    if (!row->name)
        return;
    note = g_strdup_printf(
        "room on %s was kept for it, but it has not come in time; nobody gives "
        "back for it for %" G_GINT64_FORMAT " s",
        row->node,
        pauses_left(reclaimer->pauses, ns, memory->controller, reclaimer->now_ms) / 1000);
    const struct door_order order = reclaimer_order(reclaimer, row->ns, row->name, row->claim->uid);
    door_tell(&order, DOOR_PAUSED, note);
}

/* Of those that ended for it, who still count in the minute, whoever serves then. */
static GStrv still_counted(const struct reclaimer *reclaimer, const struct room_claim *claim)
{
    g_autoptr(GStrvBuilder) counted = g_strv_builder_new();

    for (char **uid = claim->ends; *uid; uid++) {
        if (reclaimer_counts(reclaimer, *uid))
            g_strv_builder_add(counted, *uid);
    }
    return g_strv_builder_end(counted);
}

/* What is left of it is a note of them. Whether it has served says how soon its namespace gets another one. */
static void end_in(struct claim_sheet *sheet, void *data)
{
    struct ending *ending = data;
    const struct room_claim *claim = ending->row->claim;
    g_auto(GStrv) counted = still_counted(ending->reclaimer, claim);

    g_hash_table_foreach_remove(sheet->pauses, is_forgiven, (gpointer)ending->reclaimer);
    claim_sheet_remove(sheet, ending->row->node, claim->uid);
    if (claim_is_over(claim))
        return;
    if (*counted)
        claim_sheet_add(sheet, ending->row->node, claim_over(claim, (const char *const *)counted));
    if (ending->in_vain)
        pause_namespace(sheet, ending);
    else if (ending->state == CLAIM_BOUND)
        g_hash_table_remove(sheet->pauses, claim->ns);
}

static void end_claim(struct reclaimer *reclaimer, struct claim_row *row, enum claim_state state)
{
    const bool missed = state == CLAIM_LAPSED || state == CLAIM_GONE || state == CLAIM_HALF;
    struct ending ending = {reclaimer, row, state, missed && has_ended_any(reclaimer, row), 0};
    g_autoptr(GError) failure = NULL;

    if (!claim_book_change(reclaimer->book, end_in, &ending, &failure)) {
        row->state = row->state == CLAIM_WAITS ? CLAIM_STALE : row->state; /* of it nobody ends */
        log_event_limited(LOG_LEVEL_WARN, "claim cannot be taken back", LOG_TEXT("node", row->node),
                          LOG_TEXT("why", failure->message));
        return;
    }
    if (claim_is_over(row->claim))
        return;
    metrics_count(COUNTER_RECLAIMS, endings[state].result);
    log_event(LOG_LEVEL_INFO, "claim on lent quota ended", LOG_TEXT("namespace", row->claim->ns),
              LOG_TEXT("pod", row->name), LOG_TEXT("uid", row->claim->uid),
              LOG_TEXT("node", row->node), LOG_TEXT("why", endings[state].text));
    if (ending.paused_s > 0)
        log_event(LOG_LEVEL_INFO, "nobody gives back to a namespace whose pod has not come",
                  LOG_TEXT("namespace", row->claim->ns), LOG_NUMBER("seconds", ending.paused_s));
    if (state == CLAIM_LAPSED)
        tell_lapsed(reclaimer, row);
    else if (state == CLAIM_BOUND)
        pauses_end(reclaimer->pauses, row->claim->ns,
                   reclaimer_remember(reclaimer, row->claim->uid)->controller);
    else if (state == CLAIM_WAITS)
        reclaimer_remember(reclaimer, row->claim->uid)->again_ms =
            reclaimer->now_ms + RECLAIM_AGAIN_MS;
    if (row->state == CLAIM_WAITS)
        row->state = CLAIM_STALE; /* of it nobody ends any more */
}

/* Of a group all get room, or none: also where one is gone. */
static bool ends_group(const struct claim_row *row)
{
    return row->state == CLAIM_LAPSED || row->state == CLAIM_UNSURE ||
           row->state == CLAIM_NODELESS || (row->state == CLAIM_GONE && !claim_is_over(row->claim));
}

/* What one of a group does not get, none of it gets. */
static void end_claims(struct reclaimer *reclaimer, GArray *rows, struct claim_row *of,
                       enum claim_state state)
{
    g_autofree char *group = g_strdup(of->claim->group);

    end_claim(reclaimer, of, state);
    for (guint i = 0; group && i < rows->len; i++) {
        struct claim_row *row = &g_array_index(rows, struct claim_row, i);
        if (row->state == CLAIM_WAITS && g_strcmp0(row->claim->group, group) == 0)
            end_claim(reclaimer, row, state == CLAIM_GONE ? CLAIM_HALF : state);
    }
}

/* What is over, and still of use to whoever takes over. */
static bool is_kept(const struct reclaimer *reclaimer, const struct claim_row *row)
{
    g_auto(GStrv) counted = still_counted(reclaimer, row->claim);

    return claim_is_over(row->claim) && *counted;
}

void evictions_settle(struct reclaimer *reclaimer, GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        struct claim_row *row = &g_array_index(rows, struct claim_row, i);
        if (ends_group(row))
            end_claims(reclaimer, rows, row, row->state);
        else if (row->state != CLAIM_WAITS && !is_kept(reclaimer, row))
            end_claim(reclaimer, row, row->state);
    }
}

/* --- evictions ------------------------------------------------------------------------------------------- */

enum fate {
    FATE_GONE,  /* it has ended, or is about to */
    FATE_LATER, /* not now */
    FATE_KEPT,  /* it is not to end: what it holds is not lent any more, or it may not be ended */
    FATE_EVICTED,
};

static void log_evicted(const struct claim_row *row, const struct evictee *evictee, int64_t gpus,
                        const char *claimant)
{
    g_autofree char *pod = g_strdup_printf("%s/%s", evictee->ns, evictee->name);
    g_autofree char *cards = reclaimer_cards(gpus);

    log_event(LOG_LEVEL_INFO, "evicted: its namespace gives back", LOG_TEXT("pod", pod),
              LOG_TEXT("node", row->node), LOG_TEXT("cards", cards), LOG_TEXT("for", claimant));
}

/* Free with g_free. */
static char *note_of(const struct claim_row *row, const char *ns, int64_t gpus,
                     const char *claimant)
{
    g_autofree char *cards = reclaimer_cards(gpus);

    return g_strdup_printf(
        "namespace %s has more than its quota's min; it gives %s on %s back to %s", ns, cards,
        row->node, claimant);
}

/* Under the lock. */
static bool may_end(const struct reclaimer *reclaimer, const struct claim_row *row, const char *uid)
{
    const struct pod_view claimant = {.uid = row->claim->uid, .ns = row->ns};
    int64_t now_ms;
    g_autoptr(GHashTable) going = limiter_going(permits_lock(reclaimer->permits, &now_ms));

    permits_unlock(reclaimer->permits);
    return reclaim_may_end(reclaimer->args.store, going, &claimant, row->node, uid);
}

/* Whether it is to be evicted now. `ret_evictee` and `ret_gpus` are set if so. */
static enum fate look_at(struct reclaimer *reclaimer, const struct claim_row *row, const char *uid,
                         struct evictee *ret_evictee, int64_t *ret_gpus)
{
    struct store *store = reclaimer->args.store;
    enum fate fate = FATE_EVICTED;

    store_lock(store);
    const struct allocation *ending = ledger_get(store_ledger(store), uid);
    if (!ending || ending->terminating || reclaimer_ends(reclaimer, uid))
        fate = FATE_GONE;
    else if (reclaimer_is_before(reclaimer->stays, uid, reclaimer->now_ms) ||
             permits_forbid(reclaimer->permits, ENDER_RECLAIM, ending->ns) != LIMIT_NONE)
        fate = FATE_LATER;
    else if (!may_end(reclaimer, row, uid))
        fate = FATE_KEPT;
    if (fate == FATE_EVICTED) {
        ret_evictee->ns = g_strdup(ending->ns);
        ret_evictee->name = g_strdup(ending->name);
        ret_evictee->uid = g_strdup(uid);
        *ret_gpus = elastic_gpus(ending);
    }
    store_unlock(store);
    return fate;
}

/* One pod that is to give back. */
struct giving_back {
    struct reclaimer *reclaimer;
    const struct claim_row *row;
    const char *uid;
};

/* It was read since it was looked at, which may have taken long. */
static bool is_wanted(void *data, GError **error)
{
    const struct giving_back *giving = data;
    struct store *store = giving->reclaimer->args.store;

    store_lock(store);
    const bool wanted = may_end(giving->reclaimer, giving->row, giving->uid);
    store_unlock(store);
    return wanted;
}

static enum fate note_outcome(struct reclaimer *reclaimer, const struct door_order *order,
                              const struct evictee *evictee, enum door_answer answer,
                              const char *why)
{
    switch (answer) {
    case DOOR_STAYS:
        reclaimer_note_stay(reclaimer, order, evictee, why);
        return FATE_KEPT;
    case DOOR_OPEN:
        return FATE_EVICTED;
    case DOOR_UNKNOWN:
    case DOOR_LATER:
    case DOOR_OBSERVED:
    case DOOR_FAILED:
        break;
    case DOOR_GONE:
    case DOOR_ENDS:
    case DOOR_UNWANTED:
        return FATE_LATER; /* the watch will say */
    }
    reclaimer_set_time(reclaimer->stays, order->uid, reclaimer->now_ms + RECLAIM_PAUSE_MS);
    reclaimer_note_failure(order, answer, why);
    return FATE_LATER;
}

static enum fate evict(struct reclaimer *reclaimer, const struct claim_row *row, const char *uid)
{
    struct giving_back giving = {reclaimer, row, uid};
    g_auto(evictee) known = {0}, evictee = {0};
    g_autoptr(GError) failure = NULL;
    int64_t gpus = 0;
    const enum fate fate = look_at(reclaimer, row, uid, &known, &gpus);

    if (fate != FATE_EVICTED)
        return fate;
    struct door_order order = reclaimer_order(reclaimer, known.ns, known.name, uid);
    g_autofree char *claimant = g_strdup_printf("%s/%s", row->ns, row->name);
    g_autofree char *note = note_of(row, known.ns, gpus, claimant);
    order.is_wanted = is_wanted;
    order.data = &giving;
    order.whom = claimant;
    order.note = note;
    enum door_answer answer = door_look(&order, &evictee, &failure);
    if (answer == DOOR_FAILED)
        return FATE_LATER;
    if (answer == DOOR_OPEN)
        answer = claim_book_names(reclaimer->book, row->node, row->claim->uid, uid)
                     ? door_end(&order, &evictee, &failure)
                     : DOOR_UNWANTED;
    reclaimer_read_clock(reclaimer); /* that may have taken long, and counts from its end */
    const enum fate end =
        note_outcome(reclaimer, &order, &evictee, answer, failure ? failure->message : "");
    if (end == FATE_EVICTED)
        log_evicted(row, &known, gpus, claimant);
    return end;
}

/* False: it would not end now. Of a pod that is not to end, evict() finds out. */
static bool try_one(struct reclaimer *reclaimer, const struct claim_row *row, const char *uid)
{
    g_auto(evictee) known = {0}, evictee = {0};
    g_autoptr(GError) failure = NULL;
    int64_t gpus = 0;
    const enum fate fate = look_at(reclaimer, row, uid, &known, &gpus);

    if (fate != FATE_EVICTED)
        return fate != FATE_LATER;
    const struct door_order order = reclaimer_order(reclaimer, known.ns, known.name, uid);
    enum door_answer answer = door_look(&order, &evictee, &failure);
    if (answer == DOOR_OPEN)
        answer = door_try(&order, &evictee, &failure);
    reclaimer_read_clock(reclaimer);
    if (answer != DOOR_LATER && answer != DOOR_FAILED && answer != DOOR_UNKNOWN)
        return true;
    reclaimer_set_time(reclaimer->stays, uid, reclaimer->now_ms + RECLAIM_PAUSE_MS);
    reclaimer_note_failure(&order, answer, failure->message);
    return false;
}

static bool is_together(const struct claim_row *row, const struct claim_row *with)
{
    return row == with || (row->claim->group && !claim_is_over(row->claim) &&
                           g_strcmp0(row->claim->group, with->claim->group) == 0);
}

/* Where a budget keeps one of those that end for a claim, or for a group's claims, none of them begins: the others
 * would end in vain, and again each time that the claim is made anew. */
static bool may_begin(struct reclaimer *reclaimer, const GArray *rows, const struct claim_row *with)
{
    g_autoptr(GArray) together = g_array_new(FALSE, FALSE, sizeof(struct claim_row *));
    guint n = 0;

    for (guint i = 0; i < rows->len; i++) {
        const struct claim_row *row = &g_array_index(rows, struct claim_row, i);
        if (!is_together(row, with))
            continue;
        if (has_ended_any(reclaimer, row))
            return true;
        n += g_strv_length(row->claim->ends);
        g_array_append_val(together, row);
    }
    for (guint i = 0; n > 1 && i < together->len; i++) {
        const struct claim_row *row = g_array_index(together, struct claim_row *, i);
        for (char **uid = row->claim->ends; *uid; uid++) {
            if (!worker_goes_on(&reclaimer->worker) || !try_one(reclaimer, row, *uid))
                return false;
        }
    }
    return true;
}

void evictions_send(struct reclaimer *reclaimer, GArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        struct claim_row *row = &g_array_index(rows, struct claim_row, i);
        if (row->state != CLAIM_WAITS || claim_is_over(row->claim) ||
            !may_begin(reclaimer, rows, row))
            continue;
        for (char **uid = row->claim->ends; row->state == CLAIM_WAITS && *uid; uid++) {
            if (!worker_goes_on(&reclaimer->worker))
                return;
            if (evict(reclaimer, row, *uid) != FATE_KEPT)
                continue;
            end_claims(reclaimer, rows, row, CLAIM_WAITS);
        }
    }
}

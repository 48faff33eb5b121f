/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/reclaimer.h"

#include "base/log.h"
#include "base/metrics.h"
#include "reclaim/reclaimer_state.h"

#define LOOK_MS 1000

struct reclaimer *reclaimer_new(const struct reclaimer_args *args)
{
    struct reclaimer *reclaimer = g_new0(struct reclaimer, 1);

    reclaimer->args = *args;
    reclaimer->throttle = throttle_new(args->options.at_once, args->options.per_minute);
    reclaimer->memories = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    reclaimer->stays = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    reclaimer->written = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    reclaimer->claimed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    reclaimer->pauses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    worker_init(&reclaimer->worker);
    return reclaimer;
}

void reclaimer_free(struct reclaimer *reclaimer)
{
    if (!reclaimer)
        return;
    worker_release(&reclaimer->worker);
    throttle_free(reclaimer->throttle);
    g_hash_table_unref(reclaimer->memories);
    g_hash_table_unref(reclaimer->stays);
    g_hash_table_unref(reclaimer->written);
    g_hash_table_unref(reclaimer->claimed);
    g_hash_table_unref(reclaimer->pauses);
    g_free(reclaimer);
}

/* --- what is remembered ----------------------------------------------------------------------- */

static enum throttle_pod look_up(const char *uid, void *data)
{
    const struct allocation *held = ledger_get(store_ledger(data), uid);

    return !held ? THROTTLE_ENDED : held->terminating ? THROTTLE_ENDS : THROTTLE_STAYS;
}

static gboolean is_over(gpointer uid, gpointer until_ms, gpointer data)
{
    return *(const int64_t *)until_ms <= ((const struct reclaimer *)data)->now_ms;
}

static gboolean waits_no_more(gpointer uid, gpointer memory, gpointer data)
{
    return !store_pending(data, uid);
}

static gboolean is_seen(gpointer uid, gpointer until_ms, gpointer data)
{
    struct reclaimer *reclaimer = data;

    return is_over(uid, until_ms, data) ||
           nominations_claim(store_nominations(reclaimer->args.store), uid, NULL);
}

static gboolean is_forgiven(gpointer ns, gpointer pause, gpointer data)
{
    return ((const struct reclaimer *)data)->now_ms >=
           ((const struct pause *)pause)->until_ms + RECLAIM_FORGET_MS;
}

static void forget_old(struct reclaimer *reclaimer)
{
    struct store *store = reclaimer->args.store;

    store_lock(store);
    throttle_settle(reclaimer->throttle, look_up, store, reclaimer->now_ms);
    g_hash_table_foreach_remove(reclaimer->stays, is_over, reclaimer);
    g_hash_table_foreach_remove(reclaimer->memories, waits_no_more, store);
    g_hash_table_foreach_remove(reclaimer->written, is_seen, reclaimer);
    g_hash_table_foreach_remove(reclaimer->pauses, is_forgiven, reclaimer);
    store_unlock(store);
}

/* Whom others may have evicted a moment ago, as the claims say, those that are over among them: so that two replicas
 * within a minute do no more than one may. Who ends for another reason, or has ended long ago, counts as well. */
static void take_over(struct reclaimer *reclaimer, const GArray *rows)
{
    struct store *store = reclaimer->args.store;

    if (reclaimer->taken_over == reclaimer->term)
        return;
    reclaimer->taken_over = reclaimer->term;
    store_lock(store);
    for (guint i = 0; i < rows->len; i++) {
        const struct room_claim *claim = g_array_index(rows, struct claim_row, i).claim;
        for (char **uid = claim->ends; *uid; uid++) {
            const enum throttle_pod seen = look_up(*uid, store);
            if (seen == THROTTLE_ENDS && !throttle_has(reclaimer->throttle, *uid))
                throttle_note(reclaimer->throttle, *uid, reclaimer->now_ms);
            else if (seen == THROTTLE_ENDED)
                throttle_count(reclaimer->throttle, *uid, reclaimer->now_ms);
        }
    }
    store_unlock(store);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

void reclaimer_look(struct reclaimer *reclaimer)
{
    struct store *store = reclaimer->args.store;

    reclaimer->term = leadership_term(reclaimer->args.leadership);
    if (reclaimer->term == 0 || !store_is_synced(store))
        return;
    reclaimer_read_clock(reclaimer);
    forget_old(reclaimer);
    g_autoptr(GArray) rows = claims_read(store);
    take_over(reclaimer, rows);
    evictions_settle(reclaimer, rows);
    evictions_send(reclaimer, rows);
    claimants_serve(reclaimer, rows);
}

static void *run(void *data)
{
    struct reclaimer *reclaimer = data;

    while (worker_rest(&reclaimer->worker, LOOK_MS))
        reclaimer_look(reclaimer);
    return NULL;
}

bool reclaimer_start(struct reclaimer *reclaimer, GError **error)
{
    return worker_start(&reclaimer->worker, run, reclaimer, error);
}

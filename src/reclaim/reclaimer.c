/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/reclaimer.h"

#include "base/log.h"
#include "base/metrics.h"
#include "reclaim/reclaimer_state.h"

#define LOOK_MS 1000

/* As the store has it. */
static int64_t read_clock(void *data)
{
    return ((const struct reclaimer *)data)->now_ms;
}

static struct permits *own_permits(struct reclaimer *reclaimer)
{
    const struct reclaimer_options *options = &reclaimer->args.options;
    const struct permits_options own = {
        .limits = {.of[ENDER_RECLAIM] = {(uint32_t)options->per_minute,
                                         (uint32_t)options->at_once}},
        .clock = read_clock,
        .data = reclaimer};

    return permits_new(&own);
}

static void free_memory(gpointer data)
{
    struct memory *memory = data;

    g_free(memory->controller);
    g_free(memory);
}

struct reclaimer *reclaimer_new(const struct reclaimer_args *args)
{
    struct reclaimer *reclaimer = g_new0(struct reclaimer, 1);

    reclaimer->args = *args;
    reclaimer->permits = args->permits ? args->permits : own_permits(reclaimer);
    reclaimer->memories = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_memory);
    reclaimer->pauses = pauses_new(RECLAIM_BACKOFF_MIN_MS, RECLAIM_BACKOFF_MAX_MS);
    reclaimer->stays = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    reclaimer->last_ns = g_strdup("");
    reclaimer->book = claim_book_new(args->store, args->files, args->files_data);
    reclaimer->views = claim_views_new(args->store, args->cluster);
    worker_init(&reclaimer->worker);
    return reclaimer;
}

void reclaimer_free(struct reclaimer *reclaimer)
{
    if (!reclaimer)
        return;
    worker_release(&reclaimer->worker);
    if (!reclaimer->args.permits)
        permits_free(reclaimer->permits);
    g_hash_table_unref(reclaimer->memories);
    pauses_free(reclaimer->pauses);
    g_hash_table_unref(reclaimer->stays);
    g_free(reclaimer->last_ns);
    claim_book_free(reclaimer->book);
    claim_views_free(reclaimer->views);
    g_free(reclaimer);
}

/* --- what is remembered ----------------------------------------------------------------------- */

static enum limiter_pod look_up(const char *uid, void *data)
{
    const struct allocation *held = ledger_get(store_ledger(data), uid);

    return !held ? LIMITER_ENDED : held->terminating ? LIMITER_ENDS : LIMITER_STAYS;
}

static gboolean is_over(gpointer uid, gpointer until_ms, gpointer data)
{
    return *(const int64_t *)until_ms <= ((const struct reclaimer *)data)->now_ms;
}

static gboolean waits_no_more(gpointer uid, gpointer memory, gpointer data)
{
    return !store_pending(data, uid) && !nominations_claim(store_nominations(data), uid, NULL);
}

static void forget_old(struct reclaimer *reclaimer)
{
    struct store *store = reclaimer->args.store;
    int64_t now_ms;

    store_lock(store);
    limiter_settle(permits_lock(reclaimer->permits, &now_ms), look_up, store, reclaimer->now_ms);
    permits_unlock(reclaimer->permits);
    g_hash_table_foreach_remove(reclaimer->stays, is_over, reclaimer);
    g_hash_table_foreach_remove(reclaimer->memories, waits_no_more, store);
    store_unlock(store);
}

/* A pod of a claim. Of one that has ended the namespace is not known. */
static void note_other(const struct reclaimer *reclaimer, struct limiter *limiter, const char *uid)
{
    struct store *store = reclaimer->args.store;
    const enum limiter_pod seen = look_up(uid, store);
    const struct allocation *held = ledger_get(store_ledger(store), uid);

    if (seen == LIMITER_ENDS && !limiter_has(limiter, uid))
        limiter_note_going(limiter, ENDER_RECLAIM, held->ns, uid, reclaimer->now_ms);
    else if (seen == LIMITER_ENDED)
        limiter_note_ended(limiter, ENDER_RECLAIM, NULL, uid, reclaimer->now_ms);
}

/* Whom others may have evicted a moment ago, as the claims say, those that are over among them: so that two replicas
 * within a minute do no more than one may. Who ends for another reason, or has ended long ago, counts as well. */
static void take_over(struct reclaimer *reclaimer, const GArray *rows)
{
    struct store *store = reclaimer->args.store;
    int64_t now_ms;

    if (reclaimer->taken_over == reclaimer->term)
        return;
    reclaimer->taken_over = reclaimer->term;
    store_lock(store);
    struct limiter *limiter = permits_lock(reclaimer->permits, &now_ms);
    for (guint i = 0; i < rows->len; i++) {
        const struct room_claim *claim = g_array_index(rows, struct claim_row, i).claim;
        for (char **uid = claim->ends; *uid; uid++)
            note_other(reclaimer, limiter, *uid);
    }
    permits_unlock(reclaimer->permits);
    store_unlock(store);
}

/* A claim that nobody may end for keeps room in vain, and makes its pod wait longer once it has lapsed. */
static void make_claims(struct reclaimer *reclaimer, const GArray *rows)
{
    g_autofree char *stopped = permits_why_stopped(reclaimer->permits);

    if (!stopped)
        claimants_serve(reclaimer, rows);
}

/* --- the thread -------------------------------------------------------------------------------------------- */

void reclaimer_look(struct reclaimer *reclaimer)
{
    struct store *store = reclaimer->args.store;

    reclaimer->term = leadership_term(reclaimer->args.leadership);
    if (!claim_book_read(reclaimer->book) || reclaimer->term == 0 || !store_is_synced(store))
        return;
    reclaimer_read_clock(reclaimer);
    forget_old(reclaimer);
    g_autoptr(GArray) rows = claims_read(store);
    take_over(reclaimer, rows);
    evictions_settle(reclaimer, rows);
    evictions_send(reclaimer, rows);
    make_claims(reclaimer, rows);
    claim_views_show(reclaimer->views, claim_book_sheet(reclaimer->book), reclaimer->now_ms);
}

static void *run(void *data)
{
    struct reclaimer *reclaimer = data;

    do {
        reclaimer_look(reclaimer);
    } while (worker_rest(&reclaimer->worker, LOOK_MS));
    return NULL;
}

bool reclaimer_start(struct reclaimer *reclaimer, GError **error)
{
    return worker_start(&reclaimer->worker, run, reclaimer, error);
}

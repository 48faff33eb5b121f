/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/reclaimer_state.h"

#include "base/log.h"
#include "base/metrics.h"
#include "maintain/movers.h"

#define CALL_MS 10000

/* --- what is remembered ----------------------------------------------------------------------------- */

void reclaimer_set_time(GHashTable *times, const char *uid, int64_t until_ms)
{
    g_hash_table_replace(times, g_strdup(uid), g_memdup2(&until_ms, sizeof until_ms));
}

bool reclaimer_is_before(GHashTable *times, const char *uid, int64_t now_ms)
{
    const int64_t *until_ms = g_hash_table_lookup(times, uid);

    return until_ms && now_ms < *until_ms;
}

void reclaimer_read_clock(struct reclaimer *reclaimer)
{
    struct moment moment;

    store_decide(reclaimer->args.store, &moment);
    store_unlock(reclaimer->args.store);
    reclaimer->now_ms = moment.now_ms;
    reclaimer->now_ns = moment.now_ns;
}

struct memory *reclaimer_remember(struct reclaimer *reclaimer, const char *uid)
{
    struct memory *memory = g_hash_table_lookup(reclaimer->memories, uid);

    if (!memory) {
        memory = g_new(struct memory, 1);
        *memory = (struct memory){.answer = -1};
        g_hash_table_insert(reclaimer->memories, g_strdup(uid), memory);
    }
    return memory;
}

const char *reclaimer_claimed_by(const struct reclaimer *reclaimer, const struct claim_row *row)
{
    return row->ns ? row->ns : g_hash_table_lookup(reclaimer->claimed, row->claim->uid);
}

/* --- words ------------------------------------------------------------------------------------ */

void reclaimer_post(const struct reclaimer *reclaimer, enum pod_event_cause cause,
                    const struct pod_view *pod, const char *note)
{
    pod_event_post(reclaimer->args.cluster,
                   &(struct pod_event){cause, pod->ns, pod->name, pod->uid, note});
}

char *reclaimer_cards(int64_t gpus)
{
    return g_strdup_printf("%.10g card%s", (double)gpus / 1000, gpus == 1000 ? "" : "s");
}

/* --- pods that may end ----------------------------------------------------------------------- */

bool reclaimer_read_pod(const struct reclaimer *reclaimer, const struct evictee *evictee,
                        char **ret_why)
{
    struct cluster *cluster = reclaimer->args.cluster;
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;

    *ret_why = NULL;
    if (cluster->ops->get_pod(cluster, arena, evictee->ns, evictee->name,
                              g_get_monotonic_time() / 1000 + CALL_MS, &view, NULL) != OUTCOME_OK ||
        g_strcmp0(view.uid, evictee->uid) != 0 || view.terminating || pod_view_is_terminal(&view))
        return false;
    *ret_why = movers_why_stays(&view, ENDER_RECLAIM,
                                store_options(reclaimer->args.store)->reclaim_uncontrolled);
    return true;
}

void reclaimer_note_stay(struct reclaimer *reclaimer, const struct evictee *evictee,
                         const char *why)
{
    g_autofree char *pod = g_strdup_printf("%s/%s", evictee->ns, evictee->name);

    metrics_count(COUNTER_RECLAIM_EVICTIONS, RECLAIM_EVICTION_STAYS);
    reclaimer_set_time(reclaimer->stays, evictee->uid, reclaimer->now_ms + RECLAIM_STAYS_MS);
    log_event(LOG_LEVEL_INFO, "pod gives nothing back", LOG_TEXT("pod", pod), LOG_TEXT("why", why));
}

void reclaimer_note_failure(struct reclaimer *reclaimer, const struct evictee *evictee,
                            enum eviction eviction, const char *why)
{
    g_autofree char *pod = g_strdup_printf("%s/%s", evictee->ns, evictee->name);
    const bool later = eviction == EVICTION_LATER;

    metrics_count(COUNTER_RECLAIM_EVICTIONS,
                  later ? RECLAIM_EVICTION_LATER : RECLAIM_EVICTION_FAILED);
    log_event_limited(later ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "pod cannot be evicted",
                      LOG_TEXT("pod", pod), LOG_TEXT("why", why));
}

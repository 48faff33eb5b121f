/* SPDX-License-Identifier: Apache-2.0 */
#include "reclaim/reclaimer_state.h"

#include "base/log.h"
#include "base/metrics.h"

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

int64_t reclaimer_now_s(const struct reclaimer *reclaimer)
{
    return reclaimer->now_ns / 1000000000;
}

bool reclaimer_counts(const struct reclaimer *reclaimer, const char *uid)
{
    int64_t now_ms;
    const bool counts =
        limiter_counts(permits_lock(reclaimer->permits, &now_ms), uid, reclaimer->now_ms);

    permits_unlock(reclaimer->permits);
    return counts;
}

bool reclaimer_ends(const struct reclaimer *reclaimer, const char *uid)
{
    int64_t now_ms;
    const bool ends = limiter_has(permits_lock(reclaimer->permits, &now_ms), uid);

    permits_unlock(reclaimer->permits);
    return ends;
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

static enum outcome read_pod(void *data, const char *ns, const char *name,
                             struct evictee *ret_evictee, GError **error)
{
    struct cluster *cluster = ((const struct reclaimer *)data)->args.cluster;
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    const enum outcome outcome = cluster->ops->get_pod(
        cluster, arena, ns, name, g_get_monotonic_time() / 1000 + CALL_MS, &view, error);

    if (outcome == OUTCOME_OK)
        evictee_set(ret_evictee, &view);
    return outcome;
}

static enum eviction send_eviction(void *data, const struct evictee *evictee, bool try,
                                   GError **error)
{
    struct reclaimer *reclaimer = data;
    const enum eviction eviction = reclaimer->args.evict(reclaimer->args.data, evictee, try, error);

    reclaimer_read_clock(reclaimer); /* that may have taken long, and counts from its end */
    return eviction;
}

struct door_order reclaimer_order(struct reclaimer *reclaimer, const char *ns, const char *name,
                                  const char *uid)
{
    static const struct door_api api = {read_pod, send_eviction};

    return (struct door_order){.cluster = reclaimer->args.cluster,
                               .store = reclaimer->args.store,
                               .api = &api,
                               .api_data = reclaimer,
                               .ender = ENDER_RECLAIM,
                               .permits = reclaimer->permits,
                               .force = store_options(reclaimer->args.store)->reclaim_uncontrolled,
                               .ns = ns,
                               .name = name,
                               .uid = uid,
                               .leadership = reclaimer->args.leadership,
                               .term = reclaimer->term};
}

void reclaimer_note_stay(struct reclaimer *reclaimer, const struct door_order *order,
                         const struct evictee *evictee, const char *why)
{
    const bool tied = may_end_not(order->ender, order->force, evictee->ties) != 0;
    const int64_t young_ms =
        tied ? 0 : permits_young_ms(order->permits, order->ender, evictee->started_s);
    g_autofree char *pod = g_strdup_printf("%s/%s", order->ns, order->name);

    reclaimer_set_time(reclaimer->stays, order->uid,
                       reclaimer->now_ms + (young_ms > 0 ? young_ms : RECLAIM_STAYS_MS));
    log_event(LOG_LEVEL_INFO, "pod gives nothing back", LOG_TEXT("pod", pod), LOG_TEXT("why", why));
}

void reclaimer_note_failure(const struct door_order *order, enum door_answer answer,
                            const char *why)
{
    g_autofree char *pod = g_strdup_printf("%s/%s", order->ns, order->name);
    const bool later = answer == DOOR_LATER;

    log_event_limited(later ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "pod cannot be evicted",
                      LOG_TEXT("pod", pod), LOG_TEXT("why", why));
}

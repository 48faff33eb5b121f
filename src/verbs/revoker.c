/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/revoker.h"

#include "base/log.h"
#include "base/metrics.h"

#define PER_RUN_MAX 20
#define CALL_MS 5000

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static bool end_promise(struct cluster *cluster, const struct stray *stray)
{
    g_auto(annotations) words = {0};
    g_autoptr(GError) failure = NULL;
    g_autofree char *pod = g_strdup_printf("%s/%s", stray->ns, stray->name);
    const struct pod_annotation patch = {
        .ns = stray->ns, .name = stray->name, .uid = stray->uid, .all = &words};

    stray->dialect->write_revoked(&words);
    const enum outcome outcome =
        cluster->ops->annotate_pod(cluster, &patch, now_ms() + CALL_MS, &failure);
    if (outcome == OUTCOME_NOT_FOUND) /* nor does its promise exist */
        return false;
    metrics_count(COUNTER_REVOKES,
                  outcome == OUTCOME_OK ? REVOKE_RESULT_REVOKED : REVOKE_RESULT_FAILED);
    if (outcome == OUTCOME_OK)
        log_event(LOG_LEVEL_INFO, "revoked: its promise might have gone to another pod",
                  LOG_TEXT("pod", pod), LOG_TEXT("node", stray->node),
                  LOG_TEXT("dialect", stray->dialect->name));
    else
        log_event_limited(LOG_LEVEL_WARN, "a pod's promise cannot be revoked", LOG_TEXT("pod", pod),
                          LOG_TEXT("node", stray->node), LOG_TEXT("why", failure->message));
    return outcome == OUTCOME_OK;
}

unsigned revoker_run(struct store *store, struct cluster *cluster)
{
    unsigned revoked = 0;

    if (!cluster->ops->annotate_pod)
        return 0;
    store_lock(store);
    g_autoptr(GPtrArray) due = strays_take_due(store_strays(store), PER_RUN_MAX, now_ms());
    store_unlock(store);
    for (guint i = 0; i < due->len; i++)
        revoked += end_promise(cluster, due->pdata[i]);
    return revoked;
}

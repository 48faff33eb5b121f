/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/sealer.h"

#include "base/log.h"
#include "base/metrics.h"

#define CALL_MS 5000

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static GArray *take_due(struct store *store, struct seals *seals)
{
    g_autoptr(keyring) keyring = seals_keyring(seals);
    struct ledger *ledger = store_lock(store);
    struct sealing *sealing = store_sealing(store);

    sealing_set_signer(sealing, keyring_signer(keyring, g_get_real_time() / G_USEC_PER_SEC));
    GArray *due = sealing_take_due(sealing, ledger, now_ms());
    store_unlock(store);
    return due;
}

static bool write_seal(struct seals *seals, struct cluster *cluster, const struct sealed_pod *pod)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *seal = seals_make(seals, pod->facts);
    g_autofree char *name = g_strdup_printf("%s/%s", pod->ns, pod->name);
    const struct pod_annotation annotation = {
        .ns = pod->ns, .name = pod->name, .uid = pod->uid, .key = SEAL_ANNOTATION, .value = seal};

    if (!seal) /* it holds more than can be said */
        return false;
    const enum outcome outcome =
        cluster->ops->annotate_pod(cluster, &annotation, now_ms() + CALL_MS, &failure);
    metrics_count(COUNTER_SEALS, outcome == OUTCOME_OK ? SEAL_RESULT_WRITTEN : SEAL_RESULT_FAILED);
    if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND)
        log_event(LOG_LEVEL_WARN, "pod cannot be sealed", LOG_TEXT("pod", name),
                  LOG_TEXT("why", failure->message));
    return outcome == OUTCOME_OK;
}

unsigned sealer_run(struct store *store, struct cluster *cluster)
{
    struct seals *seals = store_options(store)->seals;
    unsigned written = 0;

    if (!seals || !cluster->ops->annotate_pod)
        return 0;
    g_autoptr(GArray) due = take_due(store, seals);
    for (guint i = 0; i < due->len; i++)
        written += write_seal(seals, cluster, &g_array_index(due, struct sealed_pod, i));
    return written;
}

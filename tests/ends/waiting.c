/* SPDX-License-Identifier: Apache-2.0 */
#include "waiting.h"

#include "../faults/sim.h"
#include "../prop/chance.h"
#include "facts.h"
#include "pods.h"

#include <string.h>

/* The delay, two minutes of evictions, a lapsed look and the pods' own ends; measured at 3 minutes at most. */
#define MOST_US (15 * MINUTE)

static GHashTable *since; /* uid -> int64_t *: since when room can be had for it */
static int64_t most_us;   /* of all worlds */
static uint64_t n_seen;

void waiting_reset(void)
{
    g_clear_pointer(&since, g_hash_table_unref);
    since = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

uint64_t waiting_n(int64_t *ret_most_us)
{
    *ret_most_us = most_us;
    return n_seen;
}

/* What it holds may be taken back: docs/quotas.md, steps 3 and 4. */
static bool gives_back(cJSON *pod, const char *claimant)
{
    const char *ns = api_text(pod, "metadata", "namespace"), *kind = pod_owner_kind(pod);
    static const char *const keeps[] = {"descheduler.alpha.kubernetes.io/prefer-no-eviction",
                                        "cluster-autoscaler.kubernetes.io/safe-to-evict",
                                        "karpenter.sh/do-not-disrupt",
                                        "scheduling.koordinator.sh/refuse-to-migrate",
                                        "scheduling.koordinator.sh/eviction-cost",
                                        GANG "name",
                                        "guarded",
                                        "finalizer",
                                        "kubernetes.io/config.mirror"};

    for (size_t i = 0; i < G_N_ELEMENTS(keeps); i++) {
        if (pod_word(pod, keeps[i]))
            return false;
    }
    return kind && !g_str_equal(kind, "DaemonSet") && !pod_ends(pod) &&
           api_at(pod, "status", "startTime") && !g_str_equal(ns, claimant) &&
           (settings.min_runtime_ms == 0 ||
            (pod_started_us(pod) > 0 &&
             g_get_real_time() - pod_started_us(pod) > settings.min_runtime_ms * MS)) &&
           facts_least_held(ns) - pod_units(pod) >= facts_most_min(ns);
}

/* On that card one end makes room that was not there: nothing else counts, so that a search of any kind finds it. */
static bool has_room(const char *node, int card, cJSON *waits)
{
    g_autoptr(GPtrArray) paths = pods_paths();
    const char *ns = api_text(waits, "metadata", "namespace");
    const int left = UNITS - pods_used(node, card);

    if (left >= pod_units(waits))
        return false; /* it needs nobody's end, and waits for something else */
    for (guint i = 0; i < paths->len; i++) {
        cJSON *pod = api_get(paths->pdata[i]);
        if (g_strcmp0(pod_node(pod), node) == 0 && pod_card(pod) == card &&
            left + pod_units(pod) >= pod_units(waits) && gives_back(pod, ns))
            return true;
    }
    return false;
}

static bool is_paused(const char *ns)
{
    const char *text = api_text(api_get(SHEET), "data", "claims");
    cJSON *sheet = cJSON_Parse(text ? text : "{}");
    const bool paused = api_at(sheet, "pauses", ns) != NULL;

    cJSON_Delete(sheet);
    return paused;
}

/* All that wait in the namespace. */
static int wanted(const char *ns)
{
    g_autoptr(GPtrArray) paths = pods_paths();
    int units = 0;

    for (guint i = 0; i < paths->len; i++) {
        cJSON *pod = api_get(paths->pdata[i]);
        if (!pod_node(pod) && g_str_equal(api_text(pod, "metadata", "namespace"), ns))
            units += pod_units(pod);
    }
    return units;
}

/* All that its namespace waits for is within the min, so that it need not give way to any of them. */
static bool can_be_helped(cJSON *pod)
{
    const char *ns = api_text(pod, "metadata", "namespace");
    bool room = false;

    if (pod_node(pod) || pod_ends(pod) || !pod_asks(pod) || pod_word(pod, GANG "name") ||
        pod_priority(pod) > 0 || api_at(pod, "status", "nominatedNodeName") || is_paused(ns) ||
        facts_most_held(ns) + wanted(ns) > facts_least_min(ns))
        return false;
    for (int n = 0; n < NODES_N; n++) {
        g_autofree char *node = g_strdup_printf("n%d", n);
        g_autofree char *path = g_strconcat("/api/v1/nodes/", node, NULL);
        if (cJSON_GetArraySize(api_at(api_get(path), "spec", "taints")) > 0)
            continue;
        for (int card = 0; card < CARDS_N; card++)
            room |= has_room(node, card, pod);
    }
    return room;
}

static void look_at(cJSON *pod)
{
    const char *uid = api_text(pod, "metadata", "uid");
    const int64_t *from_us = g_hash_table_lookup(since, uid), now_us = sim_now_us();

    if (!can_be_helped(pod)) {
        g_hash_table_remove(since, uid);
        return;
    }
    n_seen += !from_us;
    if (!from_us)
        g_hash_table_insert(since, g_strdup(uid), g_memdup2(&now_us, sizeof now_us));
    else if (now_us - *from_us > most_us)
        most_us = now_us - *from_us;
    HOLDS(!from_us || now_us - *from_us < MOST_US, "%s/%s waits within its min for %d s",
          api_text(pod, "metadata", "namespace"), api_text(pod, "metadata", "name"),
          (int)((now_us - *from_us) / S));
}

void waiting_look(bool calm)
{
    g_autoptr(GPtrArray) paths = pods_paths();

    if (settings.modes[RECLAIM] != MODE_ON || !calm) {
        g_hash_table_remove_all(since);
        return;
    }
    for (guint i = 0; i < paths->len; i++)
        look_at(api_get(paths->pdata[i]));
}

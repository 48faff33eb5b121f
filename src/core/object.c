/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <gpuledger/object.h>

const char *string_pairs_get(const struct string_pairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->n; i++) {
        if (g_str_equal(pairs->items[i].key, key))
            return pairs->items[i].value;
    }
    return NULL;
}

bool pod_view_is_bound(const struct pod_view *pod)
{
    return pod->node_name && *pod->node_name;
}

bool pod_view_is_mirror(const struct pod_view *pod)
{
    return string_pairs_get(&pod->annotations, "kubernetes.io/config.mirror") != NULL;
}

bool pod_view_is_terminal(const struct pod_view *pod)
{
    return g_strcmp0(pod->phase, "Succeeded") == 0 || g_strcmp0(pod->phase, "Failed") == 0;
}

const char *container_view_amount(const struct container_view *container, const char *resource)
{
    const char *limit = string_pairs_get(&container->limits, resource);
    return limit ? limit : string_pairs_get(&container->requests, resource);
}

/* What the API server sets where a pod does not say it. */
#define GRACE_S 30
#define SECONDS_MAX (INT64_C(1) << 32)

int64_t pod_view_lasts(const struct pod_view *pod)
{
    if (pod->active_deadline_s <= 0 || pod->active_deadline_s > SECONDS_MAX)
        return 0;
    return pod->active_deadline_s + (pod->grace_s > 0 ? MIN(pod->grace_s, SECONDS_MAX) : GRACE_S);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/opt_outs.h"

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

static const char *get_text(const struct string_pairs *pairs, const char *key)
{
    const char *value = string_pairs_get(pairs, key);

    return value && *value ? value : NULL;
}

const char *pod_view_group(const struct pod_view *pod)
{
    const char *name = pod->scheduling_group;

    if (name && *name)
        return name;
    name = get_text(&pod->labels, "scheduling.x-k8s.io/pod-group");
    if (!name)
        name = get_text(&pod->labels, "pod-group.scheduling.sigs.k8s.io/name");
    return name ? name : get_text(&pod->annotations, "gang.scheduling.koordinator.sh/name");
}

const struct opt_out opt_outs[] = {
    {"descheduler.alpha.kubernetes.io/prefer-no-eviction", NULL},
    {"descheduler.alpha.kubernetes.io/eviction-in-progress", NULL},
    {"scheduling.koordinator.sh/refuse-to-migrate", NULL},
    {"scheduling.koordinator.sh/eviction-cost", "2147483647"},
    {"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
    {"karpenter.sh/do-not-disrupt", "true"},
    {NULL, NULL},
};

const char *pod_view_opt_out(const struct pod_view *pod)
{
    for (const struct opt_out *one = opt_outs; one->key; one++) {
        const char *value = string_pairs_get(&pod->annotations, one->key);
        if (value && (one->value ? g_str_equal(value, one->value) : !g_str_equal(value, "false")))
            return one->key;
    }
    return NULL;
}

unsigned pod_view_ties(const struct pod_view *pod)
{
    return (pod_view_is_mirror(pod) ? POD_TIE_MIRROR : 0U) |
           (g_strcmp0(pod->controller_kind, "DaemonSet") == 0 ? POD_TIE_DAEMON_SET : 0U) |
           (pod_view_opt_out(pod) ? POD_TIE_OPT_OUT : 0U) |
           (pod_view_group(pod) ? POD_TIE_GROUP : 0U) | (pod->controller ? 0U : POD_TIE_BARE) |
           (pod->scheduling_group && *pod->scheduling_group ? POD_TIE_UNIT : 0U);
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

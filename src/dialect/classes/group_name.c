/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/classes/group_name.h"

static const char *get_text(const struct string_pairs *pairs, const char *key)
{
    const char *value = string_pairs_get(pairs, key);

    return value && *value ? value : NULL;
}

const char *group_name(const struct pod_view *pod)
{
    const char *name = pod->scheduling_group;

    if (name && *name)
        return name;
    name = get_text(&pod->labels, "scheduling.x-k8s.io/pod-group");
    if (!name)
        name = get_text(&pod->labels, "pod-group.scheduling.sigs.k8s.io/name");
    return name ? name : get_text(&pod->annotations, "gang.scheduling.koordinator.sh/name");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/opt_out.h"

static const struct opt_out {
    const char *key;
    const char *value; /* NULL: any but "false" */
} opt_outs[] = {
    {"descheduler.alpha.kubernetes.io/prefer-no-eviction", NULL},
    {"descheduler.alpha.kubernetes.io/eviction-in-progress", NULL},
    {"scheduling.koordinator.sh/refuse-to-migrate", NULL},
    {"scheduling.koordinator.sh/eviction-cost", "2147483647"},
    {"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"},
    {"karpenter.sh/do-not-disrupt", "true"},
};

const char *opt_out_of(const struct pod_view *pod)
{
    for (size_t i = 0; i < G_N_ELEMENTS(opt_outs); i++) {
        const char *value = string_pairs_get(&pod->annotations, opt_outs[i].key);
        if (value && (opt_outs[i].value ? g_str_equal(value, opt_outs[i].value)
                                        : !g_str_equal(value, "false")))
            return opt_outs[i].key;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/denial.h"

#include <gpuledger/dialect.h>
#include <gpuledger/reason.h>
#include <string.h>

/* --- schedulers ----------------------------------------------------------------------------- */

struct denials *denials_new(const char *names, bool filter_suffices)
{
    struct denials *denials = g_new0(struct denials, 1);

    denials->filter_suffices = filter_suffices;
    denials->passes = passes_new();
    if (!names || !*names)
        return denials;
    denials->schedulers = g_strsplit(names, ",", -1);
    for (char **name = denials->schedulers; *name; name++)
        g_strstrip(*name);
    return denials;
}

void denials_free(struct denials *denials)
{
    if (!denials)
        return;
    g_strfreev(denials->schedulers);
    passes_free(denials->passes);
    g_free(denials);
}

static bool is_of_dialect(const char *scheduler)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (g_strcmp0(dialects[i]->scheduler, scheduler) == 0)
            return true;
    }
    return false;
}

bool denials_serve(const struct denials *denials, const char *scheduler)
{
    if (!denials)
        return true;
    return denials->schedulers
               ? g_strv_contains((const char *const *)denials->schedulers, scheduler)
               : !is_of_dialect(scheduler);
}

/* --- sums ----------------------------------------------------------------------------------- */

static enum barrier check_sums(const struct pod_rules *rules, const struct node *node)
{
    const struct host left = node_host_free(node);

    return rules->host.pods > left.pods       ? BARRIER_PODS
           : rules->host.cpu > left.cpu       ? BARRIER_CPU
           : rules->host.memory > left.memory ? BARRIER_MEMORY
                                              : BARRIER_NONE;
}

static char *tell_sum(enum barrier barrier)
{
    const char *what = barrier == BARRIER_PODS  ? "as many pods as it may have"
                       : barrier == BARRIER_CPU ? "less CPU left than the pod asks for"
                                                : "less memory left than the pod asks for";

    return g_strdup_printf("the node has %s, and filter has not let the pod pass there lately",
                           what);
}

/* --- the whole ------------------------------------------------------------------------------ */

static enum barrier find_barrier(const struct denials *denials, const struct pod_rules *rules,
                                 const struct node *node, bool passed, char **ret_text)
{
    enum barrier barrier = passed && denials->filter_suffices
                               ? BARRIER_NONE
                               : constraints_check(rules->constraints, node);

    if (barrier != BARRIER_NONE) {
        g_autofree char *why = constraints_tell(rules->constraints, node, barrier);
        *ret_text = g_strdup_printf("the pod may not be on the node: %s", why);
        return barrier;
    }
    barrier = passed ? BARRIER_NONE : check_sums(rules, node);
    if (barrier != BARRIER_NONE)
        *ret_text = tell_sum(barrier);
    return barrier;
}

enum denial denials_find(const struct denials *denials, const struct bind_args *args,
                         const struct pod_rules *rules, const struct node *node, int64_t now_ms,
                         char **ret_text)
{
    if (!node || !node->present) {
        *ret_text = g_strdup(reason_info(REASON_NODE_UNKNOWN)->text);
        return DENIAL_NODE;
    }
    if (!rules)
        return DENIAL_NONE;
    if (!g_str_equal(rules->ns, args->pod_namespace) || !g_str_equal(rules->name, args->pod_name)) {
        *ret_text = g_strdup("the pod of that UID has another name");
        return DENIAL_OTHER_POD;
    }
    if (!denials_serve(denials, pod_rules_scheduler(rules))) {
        *ret_text = g_strdup_printf("the pod's schedulerName is '%s', whose pods are not bound here "
                                    "(--scheduler-names)",
                                    pod_rules_scheduler(rules));
        return DENIAL_SCHEDULER;
    }
    const bool passed = passes_has(denials->passes, args->pod_uid, node, now_ms);
    if (!rules->constraints && !(passed && denials->filter_suffices)) {
        *ret_text = g_strdup_printf("where the pod may go cannot be read: %s", rules->why);
        return DENIAL_UNREADABLE;
    }
    const enum barrier barrier = find_barrier(denials, rules, node, passed, ret_text);
    return barrier == BARRIER_NONE ? DENIAL_NONE
                                   : (enum denial)(DENIAL_BARRIER + barrier - BARRIER_NONE - 1);
}

bool denials_may_ask(struct denials *denials, const struct bind_args *args, int64_t now_ms)
{
    const bool filtered = passes_has(denials->passes, args->pod_uid, NULL, now_ms);

    return lookups_take(&denials->lookups, filtered ? LOOKUPS_FILTERED : LOOKUPS_STRANGER, now_ms);
}

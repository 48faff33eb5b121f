/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims/may_end.h"

#include <glib.h>

/* Whose end frees nothing. */
#define COMES_BACK (POD_TIE_MIRROR | POD_TIE_DAEMON_SET)
#define ALL (COMES_BACK | POD_TIE_OPT_OUT | POD_TIE_GROUP | POD_TIE_BARE)

static const unsigned kept_by[ENDER_N] = {
    [ENDER_PREEMPTION] = POD_TIE_MIRROR,
    [ENDER_GANG_STRICT] = COMES_BACK,
    [ENDER_SWITCH] = COMES_BACK,
    [ENDER_DRAIN] = COMES_BACK | POD_TIE_BARE,
    [ENDER_PLAN] = ALL,
    [ENDER_RECLAIM] = ALL,
};

enum pod_tie may_end_not(enum ender ender, bool force, unsigned ties)
{
    ties &= kept_by[ender];
    if (force)
        ties &= ~(unsigned)POD_TIE_BARE;
    return (enum pod_tie)(ties & -ties); /* the lowest bit */
}

const char *may_end_text(enum pod_tie tie)
{
    switch (tie) {
    case POD_TIE_MIRROR:
        return "it is kubelet's own: remove its file from the node";
    case POD_TIE_DAEMON_SET:
        return "its DaemonSet would make it again on this node";
    case POD_TIE_OPT_OUT:
        return "one of its annotations says so";
    case POD_TIE_GROUP:
        return "it is of a group, which would wait for it";
    case POD_TIE_BARE:
        return "nobody makes it again; --force ends it";
    case POD_TIE_UNIT:
        return "its PodGroup may have to end as a whole";
    }
    return NULL;
}

char *may_end_why_not(enum ender ender, bool force, const struct pod_view *pod)
{
    const enum pod_tie tie = may_end_not(ender, force, pod_view_ties(pod));

    if (tie == POD_TIE_OPT_OUT)
        return g_strdup_printf("its annotation %s says so", pod_view_opt_out(pod));
    if (tie == POD_TIE_GROUP)
        return g_strdup_printf("it is of the group '%.63s', which would wait for it",
                               pod_view_group(pod));
    return g_strdup(may_end_text(tie));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pod_event.h"

#include "store/cluster.h"

static const struct pod_event_info table[POD_EVENT_N] = {
    [POD_EVENT_NO_CARD] = {"GPUCardUnknown", "Auditing"},
    [POD_EVENT_CARD_CHANGED] = {"GPUCardChanged", "Auditing"},
    [POD_EVENT_CARD_GONE] = {"GPUCardGone", "Auditing"},
    [POD_EVENT_OVERBOOKED] = {"GPUCardOverbooked", "Auditing"},
    [POD_EVENT_UNASSIGNED] = {"GPUUnassigned", "Auditing"},
    [POD_EVENT_UNREAD] = {"GPURequestUnreadable", "Auditing"},
    [POD_EVENT_LEFT_OUT] = {"GPUNodeLeftOut", "Auditing"},
    [POD_EVENT_GROUP_HALF] = {"GPUGroupHalf", "Auditing"},
    [POD_EVENT_SWITCH] = {"GPUNodeSwitchFailed", "Switching"},
    [POD_EVENT_DENIED] = {"GPUBindDenied", "Binding"},
    [POD_EVENT_INVALID] = {"GPURequestInvalid", "Binding"},
    [POD_EVENT_RECLAIMED] = {"GPUQuotaReclaimed", "Evicting"},
    [POD_EVENT_RECLAIMS] = {"GPUQuotaReclaims", "Scheduling"},
    [POD_EVENT_MOVED] = {"GPUPodMoved", "Evicting", .normal = true},
    [POD_EVENT_EVICTION_REFUSED] = {"GPUEvictionRefused", "Evicting"},
    [POD_EVENT_EVICTIONS_PAUSED] = {"GPUEvictionsPaused", "Evicting"},
    [POD_EVENT_PLAN_MOVED] = {"GPUPlanMoved", "Evicting", .normal = true},
    [POD_EVENT_PLAN_STOPPED] = {"GPUPlanStopped", "Evicting"},
    [POD_EVENT_QUOTA_LABEL] = {"GPUQuotaLabel", "Auditing"},
    [POD_EVENT_QUOTA_UNKEPT] = {"GPUQuotaUnkept", "Auditing", "Namespace"},
};

const struct pod_event_info *pod_event_info(enum pod_event_cause cause)
{
    return &table[(unsigned)cause < POD_EVENT_N ? cause : 0];
}

void pod_event_post(struct cluster *cluster, const struct pod_event *event)
{
    if (cluster->ops->post_event)
        cluster->ops->post_event(cluster, event);
}

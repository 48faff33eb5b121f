/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is told about a pod where people look first: in its Events. One table (store/pod_event.c)
 * names each cause; how often it is really written is for the cluster to limit.
 */
#include <stdbool.h>

struct cluster;

enum pod_event_cause {
    POD_EVENT_NO_CARD,      /* bound, and nothing usable says to which card */
    POD_EVENT_CARD_CHANGED, /* its annotations name another card than it was bound to */
    POD_EVENT_CARD_GONE,    /* the card does not exist any more */
    POD_EVENT_OVERBOOKED,   /* its card holds more than it has */
    POD_EVENT_UNASSIGNED,   /* the node side has not taken it for long */
    POD_EVENT_UNREAD,     /* what it asks for cannot be read or served: it holds all that it may */
    POD_EVENT_LEFT_OUT,   /* of a Node: its kubelet rejects pods */
    POD_EVENT_GROUP_HALF, /* too few pods of its group are bound, for long */
    POD_EVENT_SWITCH,     /* of a Node: it could not be made to share its cards in another way */
    POD_EVENT_INVALID,    /* what it asks for cannot be understood */
    POD_EVENT_DENIED,     /* somebody wants it on a node where it may not be */
    POD_EVENT_RECLAIMED,  /* it ends, since its namespace has borrowed what another is sure of */
    POD_EVENT_RECLAIMS,   /* others end for it */
    POD_EVENT_MOVED,      /* it ends, for whatever else than lent quota */
    POD_EVENT_EVICTION_REFUSED, /* it was to end, and its eviction was refused */
    POD_EVENT_EVICTIONS_PAUSED, /* nobody ends for it, or for its group, for a while */
    POD_EVENT_PLAN_MOVED,       /* of a Node: a pod has left it for a plan */
    POD_EVENT_PLAN_STOPPED,     /* of a Node: one was to, and the plan has stopped */
    POD_EVENT_QUOTA_LABEL,      /* its label names a quota in which it does not count */
    POD_EVENT_QUOTA_UNKEPT, /* of a Namespace: a quota of it cannot be kept, so its pods are refused */
    POD_EVENT_N
};

struct pod_event_info {
    const char *reason; /* of the Event, and of the metric */
    const char *action; /* what was being done when it was seen */
    const char *kind;   /* whom it is about; NULL: a Pod, or a Node */
    bool normal;        /* nobody has to do anything; else a warning */
};

/* Never NULL; any thread. */
const struct pod_event_info *pod_event_info(enum pod_event_cause cause);

/* All borrowed. About a Node: no `ns`, and its name for both name and UID; about a Namespace: its name for all
 * three. */
struct pod_event {
    enum pod_event_cause cause;
    const char *ns, *name, *uid;
    const char *note; /* a sentence for people; numbers are welcome here */
};

/* Hands it to the cluster, which writes it later or not at all. Never blocks; any thread. */
void pod_event_post(struct cluster *cluster, const struct pod_event *event);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why a node refuses a pod. A reason's text reaches kube-scheduler and must be constant: a text
 * that changes between two attempts changes the pod's condition, which re-queues the pod, for
 * ever. Numbers belong in explanations and events, never here.
 */
#include <gpuledger/names.h>
#include <stdbool.h>

#pragma GCC visibility push(default)

enum reason {
    REASON_NONE, /* no objection */
    REASON_NODE_UNKNOWN,
    REASON_NOT_GPU_SHARE,
    REASON_NODE_LIMIT,
    REASON_OTHER_DIALECT,
    REASON_INSUFFICIENT_MEMORY,
    REASON_UNLIMITED,
    REASON_CARD_TOO_SMALL,
    REASON_CARD_UNHEALTHY,
    REASON_CARD_CLOSED,
    REASON_INSUFFICIENT_CORE,
    REASON_INSUFFICIENT_DEVICES,
    REASON_CHANGING,
    REASON_WITHHELD,
    REASON_DEVICES_AT_ONCE,
    REASON_SHARED_MEMORY,
    REASON_NO_SLOT,
    REASON_NODE_SLOTS,
    REASON_OTHER_USE,
    REASON_CARD_NUMBERS,
    REASON_OTHER_TENANT,
    REASON_OTHER_CLASS,
    REASON_TERMS,
    REASON_ISOLATION,
    REASON_CARD_COUNT,
    REASON_SEVERAL_GPU_CONTAINERS,
    REASON_GPU_INIT_CONTAINER,
    REASON_CORE_STEP,
    REASON_CORE_WITHOUT_MEMORY,
    REASON_MEMORY_WITHOUT_CORE,
    REASON_CORE_LIMIT,
    REASON_UNFORESEEN_CARD,
    REASON_MIG_MODE,
    REASON_NO_MIG_PLACE,
    REASON_OVERSUBSCRIBED,
    REASON_CLASS_GROUP,
    REASON_ANNOTATIONS,
    REASON_QUOTA,
    REASON_RESOURCE_QUOTA,
    REASON_QUOTA_MAX,
    REASON_QUOTA_LENT,
    REASON_QUOTA_UNRECLAIMABLE,
    REASON_QUOTA_UNKEPT,
    REASON_QUOTA_COUNTING,
    REASON_EARLIER_POD,
    REASON_AWAITING_ASSIGNMENT,
    REASON_AWAITING_TURN,
    REASON_PROMISE_STANDS,
    REASON_PLUGIN_AWAY,
    REASON_PLUGIN_SILENT,
    REASON_PLACED_ELSEWHERE,
    REASON_OTHERS_COMING,
    REASON_SPOKEN_FOR,
    REASON_WORK_LIMIT, /* not known: the search was cut short */
    REASON_GANG_PLACE, /* these are of groups of pods that come together */
    REASON_GANG_UNKNOWN,
    REASON_GANG_FEW,
    REASON_GANG_NO_ROOM,
    REASON_GANG_BUSY,
    REASON_GANG_BACKOFF,
    REASON_GANG_CAPPED,
    REASON_GANG_WORK,
    REASON_GANG_PLUGIN,
    REASON_GANG_WAITING,
    REASON_GANG_LOST,
    REASON_N
};

struct reason_info {
    const char *code; /* stable, for metrics and scripts: "insufficient_memory" */
    const char *text; /* constant, for people: reaches events through kube-scheduler */
    bool resolvable;  /* evicting pods from the node could help: FailedNodes, else
                       * FailedAndUnresolvableNodes */
};

/* Never NULL; any thread. */
const struct reason_info *reason_info(enum reason reason);

#pragma GCC visibility pop

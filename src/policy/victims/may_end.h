/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods may be ended, and for which caller. A pod whose end frees nothing is no victim: kubelet goes on
 * with the mirror of a static pod, and a DaemonSet creates its pod again on the same node.
 *
 * kube-scheduler's preemption may end a pod of a DaemonSet: the successor is less important than the pod
 * that preempts, and so does not get the room.
 */
#include <gpuledger/object.h>

enum ender {
    ENDER_PREEMPTION,  /* the verb preempt, and explain's preview of it */
    ENDER_GANG_STRICT, /* a group that stays half */
    ENDER_SWITCH,      /* a node that is to share its cards otherwise */
    ENDER_DRAIN,
    ENDER_PLAN,    /* also explain's remedies, which print commands of plan */
    ENDER_RECLAIM, /* and explain's preview of it */
    ENDER_N
};

/* The first tie that keeps the pod from being ended; 0: none does. `force`: the caller ends pods as well that no
 * controller creates again. */
enum pod_tie may_end_not(enum ender ender, bool force, unsigned ties);

/* For people: what a tie means; NULL for 0. */
const char *may_end_text(enum pod_tie tie);

/* The same of a pod, with the name of its group or annotation. Free with g_free; NULL: nothing keeps it. */
char *may_end_why_not(enum ender ender, bool force, const struct pod_view *pod);

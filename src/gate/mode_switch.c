/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that is about to change its GPU sharing mode (wire/switch_mark.h) gets no pod that may still run then. Where
 * the change only leaves each card fewer holders, such a pod is placed as if that were so already: then no pod has to
 * terminate for it.
 */
#include "gate/gate.h"

#include "base/printable.h"
#include "core/node.h"
#include "policy/what_if.h"
#include "wire/switch_mark.h"

/* So long a bind may wait, and kubelet not have heard of the pod. */
#define SLACK_S 120
#define NS_PER_S G_GINT64_CONSTANT(1000000000)

GATE_ROW(mode_switch, 60);

static const struct gate_reason reasons[] = {
    {"mode_switch_ahead",
     "The node's GPUs are about to be shared in another way, and the pod may not have ended by "
     "then",
     false},
    {NULL},
};

static bool concerns(const struct node *node)
{
    return node->switches_ns != 0;
}

/* The pod, bound now, may be there still: its spec says so, or nothing. */
static bool outlasts(const struct gate_who *who, const struct node *node)
{
    const int64_t left_s = (node->switches_ns - who->now_ns) / NS_PER_S, /* no sum overflows */
        lasts_s = who->request->lasts_s;

    return lasts_s == 0 || lasts_s > left_s - SLACK_S;
}

static bool leaves_slots(const struct gate_who *who, const struct node *node)
{
    return node->slots_ahead > 0 && node->switches_ns > who->now_ns;
}

static unsigned shut(const void *self, const struct gate_who *who, const struct node *node)
{
    return outlasts(who, node) && !leaves_slots(who, node) ? 1 : 0;
}

static struct what_if *narrow(const void *self, const struct gate_who *who, const struct node *node,
                              const struct node *seen)
{
    if (!outlasts(who, node))
        return NULL;
    struct what_if *ahead = what_if_new(seen);
    node_bound_slots(ahead->node, node->slots_ahead);
    return ahead;
}

static void message(const void *self, const struct gate_who *who, const struct node *node,
                    GString *text)
{
    const int64_t lasts_s = who->request->lasts_s;
    g_autofree char *time = switch_time_format(node->switches_ns / NS_PER_S);

    if (node->switches_ns <= who->now_ns)
        g_string_append(text, "is being made a node that shares its cards in another way");
    else if (node->slots_ahead > 0)
        printable_append(text,
                         "lets a card have %d holders at most from %s on, and has no room for "
                         "another who may be there still",
                         node->slots_ahead, time);
    else
        printable_append(text, "shares its cards in another way from %s on", time);
    if (lasts_s > 0)
        printable_append(text,
                         ", and the pod may run for %" G_GINT64_FORMAT
                         " s (activeDeadlineSeconds and terminationGracePeriodSeconds)",
                         lasts_s);
    else
        g_string_append(text,
                        ", and the pod does not say for how long it runs (activeDeadlineSeconds)");
}

const struct gate gate_mode_switch = {
    .name = "mode_switch",
    .left_out = GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                            ASKED, ASKED),
    .reasons = reasons,
    .turn = GATE_AFTER_CARDS,
    .concerns = concerns,
    .shut = shut,
    .narrow = narrow,
    .message = message,
};

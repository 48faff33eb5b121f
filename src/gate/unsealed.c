/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A namespace with too many pods on a node whose seal is missing gets no more there: each counts on every card that it
 * may be on, and whoever removes seals shall not gain from it.
 */
#include "gate/gate.h"

#include "base/printable.h"

/* Pods of a namespace on a node that count on every card for the lack of a seal. */
#define UNSEALED_MAX 4

GATE_ROW(unsealed, 50);

static const struct gate_reason reasons[] = {
    {"unsealed",
     "Too many pods of the namespace are on the node of which nobody knows which GPU they have",
     false},
    {NULL},
};

static int count_unsealed(const struct node *node, const char *ns)
{
    int n = 0;

    for (guint i = 0; i < node->allocations->len && node->n_unsealed > 0; i++) {
        const struct allocation *other = node->allocations->pdata[i];
        n += other->distrust == DISTRUST_UNSEALED && g_strcmp0(other->ns, ns) == 0;
    }
    return n;
}

static bool concerns(const struct node *node)
{
    return node->n_unsealed > UNSEALED_MAX;
}

static unsigned shut(const void *self, const struct gate_who *who, const struct node *node)
{
    return count_unsealed(node, who->ns) > UNSEALED_MAX ? 1 : 0;
}

static void message(const void *self, const struct gate_who *who, const struct node *node,
                    GString *text)
{
    printable_append(text,
                     "%d pods of the namespace there have no seal and count on every GPU (at most "
                     "%d may)",
                     count_unsealed(node, who->ns), UNSEALED_MAX);
}

const struct gate gate_unsealed = {
    .name = "unsealed",
    .left_out = GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                            ASKED, ASKED),
    .reasons = reasons,
    .turn = GATE_AFTER_CARDS,
    .concerns = concerns,
    .shut = shut,
    .message = message,
};

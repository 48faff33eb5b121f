/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that are kept for a group of pods that waits for room (gang/gangs.h) get no pods of others. */
#include "gate/gate.h"

#include "base/printable.h"
#include "gang/gangs.h"
#include "queue/nominations.h"

GATE_ROW(gang_room, 100);

static const struct gate_reason reasons[] = {
    {"gang_room", "The node is kept for a group of pods that waits for room", false},
    {NULL},
};

static enum gate_scope begin(const void *self, const struct gate_who *who)
{
    const struct gate_ground *ground = self;

    return gangs_keep_from(ground->gangs, who->uid, who->priority) &&
                   !(*who->uid && nominations_have(ground->nominations, who->uid))
               ? GATE_ALL
               : GATE_IDLE;
}

static unsigned shut(const void *self, const struct gate_who *who, const struct node *node)
{
    const struct gate_ground *ground = self;

    return node && gangs_kept_on(ground->gangs, node->name, who->uid, who->priority, NULL) &&
                   !nominations_keep_for(ground->nominations, node->name, who->uid)
               ? 1
               : 0;
}

static void message(const void *self, const struct gate_who *who, const struct node *node,
                    GString *text)
{
    const struct gate_ground *ground = self;
    struct gang_row group;

    if (!gangs_kept_on(ground->gangs, node->name, who->uid, who->priority, &group))
        return;
    printable_append(text,
                     "is kept for the group %s/%s, which waits for room, for %" G_GINT64_FORMAT
                     " s at most",
                     group.ns, group.name, MAX(group.room_until_ms - who->now_ms + 999, 0) / 1000);
}

const struct gate gate_gang_room = {
    .name = "gang_room",
    .left_out = GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                            ASKED, ASKED),
    .reasons = reasons,
    .begin = begin,
    .turn = GATE_LAST,
    .shut = shut,
    .message = message,
};

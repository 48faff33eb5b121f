/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/mode.h"

#include "dialect/marks/node_marks.h"

#include <glib.h>
#include <string.h>

static const struct node_mode slots = {.label = NODE_SLOTS_KEY};

const struct node_mode *switch_mode_find(const char *name)
{
    return g_str_equal(name, NODE_SLOTS_KEY) || g_str_equal(name, strchr(NODE_SLOTS_KEY, '/') + 1)
               ? &slots
               : nvidia_mode_find(name);
}

bool switch_mode_is_slots(const struct node_mode *mode)
{
    return mode == &slots;
}

const char *switch_mode_value(const struct node_mode *mode, const struct node_view *node)
{
    return string_pairs_get(mode == &slots ? &node->annotations : &node->labels, mode->label);
}

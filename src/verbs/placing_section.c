/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/placing_section.h"

#include "core/section/rows.h"
#include "verbs/extender.h"

#define SETTINGS struct placing_settings

static bool choices_policy(size_t i, struct choice *ret_choice)
{
    if (!policies[i].name)
        return false;
    *ret_choice = (struct choice){policies[i].name, policies[i].help, (int64_t)i};
    return true;
}

static bool choices_prioritize(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"winner", "the best node 10, all others 0, so that it decides (weight 13 or more)",
         PRIORITIZE_WINNER},
        {"scaled", "10 to 1 by what each loses, so that it has a say among other preferences",
         PRIORITIZE_SCALED},
    };
    return choice_at(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

/* clang-format off */
static const struct option rows[] = {
    {"policy", CHOICE(policy, "NAME", "binpack", choices_policy),
     FOR(COMMAND_SERVE | COMMAND_REPLAY | COMMANDS_MOVING | COMMANDS_ASKING), .flags = OPTION_LIVE | OPTION_COMMON,
     .help = "Which card of a node a pod gets, among those it fits on, and by prioritize which "
             "node."},
    {"prioritize", CHOICE(shape, "SHAPE", "winner", choices_prioritize),
     FOR(COMMAND_SERVE | COMMAND_SIMULATE),
     .help = "How prioritize marks nodes, from 0 to 10; kube-scheduler adds ten times that, times "
             "the extender's weight, to its own marks."},
    {"wait-loss", INT(wait_loss, "THOUSANDTHS", "50", 0, 1000000),
     FOR(COMMAND_SERVE | COMMAND_SIMULATE),
     .help = "Prefer a node whose device plugin serves a pod sooner over one that packs better by "
             "less than so many thousandths of a card for each pod that this one has to serve "
             "before. 0: packing alone counts while a node takes the pod at once."},
};
/* clang-format on */

const struct section section_placing = {
    .name = "placing",
    .title = "Placing pods",
    ROWS(rows),
    .recorded = true,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "options/choices.h"

#include "verbs/extender.h"
#include "base/log.h"
#include "migrate/peers.h"
#include "simulate/simulation.h"

#include <gpuledger/placement.h>

static bool choose(const struct choice *choices, size_t n, size_t i, struct choice *ret_choice)
{
    if (i >= n)
        return false;
    *ret_choice = choices[i];
    return true;
}

bool choices_ranked(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"all", "pods with GPU, and, by a second entry of the configuration, those without",
         RANKED_ALL},
        {"gpu", "pods with GPU", RANKED_GPU},
        {"none", "no pods: the extender filters and binds, as those without prioritize do",
         RANKED_NONE},
    };
    return choose(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

bool choices_output(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"table", "columns for people", OUTPUT_TABLE},
        {"wide", "more columns", OUTPUT_WIDE},
        {"json", "all of it, for scripts; docs/api.md has what they may rely on", OUTPUT_JSON},
        {"yaml", "the same as YAML", OUTPUT_YAML},
        {"jsonpath=",
         "what a template takes out of the JSON, as for kubectl: "
         "{range .nodes[*]}{.name}{'\\n'}{end}",
         OUTPUT_JSONPATH, .open = true},
        {"name", "of nodes and pods: node/NAME or pod/NAMESPACE/NAME, a line each", OUTPUT_NAME},
    };
    return choose(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

bool choices_color(size_t i, struct choice *ret_choice)
{
    static const struct choice choices[] = {
        {"auto", "on a terminal, unless NO_COLOR is set or TERM is dumb", COLOR_AUTO},
        {"always", "also into files and pipes", COLOR_ALWAYS},
        {"never", "nowhere", COLOR_NEVER},
    };
    return choose(choices, G_N_ELEMENTS(choices), i, ret_choice);
}

bool choices_peer(size_t i, struct choice *ret_choice)
{
    if (!peers[i].name)
        return false;
    *ret_choice = (struct choice){peers[i].name, peers[i].title, (int64_t)i};
    return true;
}

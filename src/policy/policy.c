/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policies.h"

const struct policy policies[] = {
    {"binpack", "the fullest card that still has room, so that whole cards stay free", cost_binpack,
     rate_binpack, .fullness = 1},
    {"spread", "the emptiest card", cost_spread, rate_spread, .fullness = -1},
    {"first-fit", "the card of the lowest index that has room", cost_first_fit},
    {"strongest", "of the node whose cards have the highest compute capability, then as binpack",
     cost_binpack, rate_strongest, .fullness = 1},
    {"oc", "where the pods that are expected lose least by it (opportunity cost)", cost_oc, rate_oc,
     .slack = 0.04, .expects = true},
    {"fgd", "where free parts of cards become useless least (fragmentation gradient descent)",
     cost_fgd, rate_fgd, .expects = true},
    {0},
};

const struct policy *policy_find(const char *name)
{
    for (const struct policy *policy = policies; policy->name; policy++) {
        if (g_strcmp0(policy->name, name) == 0)
            return policy;
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plans_section.h"

#include "core/section/rows.h"

#define SETTINGS struct plans_settings

/* clang-format off */
static const struct option rows[] = {
    {"plans", BOOL(on, "false"), FOR(COMMAND_SERVE), .flags = OPTION_NEEDS_API,
     .help = "Carry out plans that ConfigMaps with the label gpuledger.io/plan order, in gpuledger's "
             "own namespace (that of the service account, or of the kubeconfig's context), as "
             "docs/plan.md has them: pods are evicted one after the other. Needs the rights of "
             "manifests/overlays/plans."},
};
/* clang-format on */

const struct section section_plans = {
    .name = "plans",
    .title = "Plans",
    ROWS(rows),
};

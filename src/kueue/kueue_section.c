/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/kueue_section.h"

#include "core/section/rows.h"

#define SETTINGS struct kueue_settings

/* clang-format off */
static const struct option rows[] = {
    {"kueue", BOOL(on, "false"), FOR(COMMAND_SERVE), .flags = OPTION_NEEDS_API,
     .help = "Answer Kueue's AdmissionChecks with the controllerName gpuledger.io/fit "
             "(kueue.x-k8s.io/v1beta2): a Workload is let in when the cards can hold all its pods, "
             "and sent back for 5s to 1m when not. Needs the rights of manifests/overlays/kueue."},
};
/* clang-format on */

const struct section section_kueue = {
    .name = "kueue",
    .title = "Kueue",
    ROWS(rows),
    .recorded = true,
};

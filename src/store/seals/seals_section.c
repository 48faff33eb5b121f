/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seals/seals_section.h"

#include "core/section/rows.h"

#define SETTINGS struct seals_settings

/* clang-format off */
static const struct option rows[] = {
    {"seal-key-file", PATH(key_file, "FILE", ""), FOR(COMMANDS_LOOKING | COMMAND_SIMULATE),
     .help = "Seal every grant with the key in this file, which is made if it is not there: what a pod "
             "was given is known after a restart, whatever its annotations were made to say. Without "
             "a key annotations are believed. Commands that look at a cluster by themselves check "
             "seals with it, and make none."},
    {"seal-secret", TEXT(secret, "NAMESPACE/NAME", ""), FOR(COMMANDS_LOOKING), .flags = OPTION_COMMON,
     .help = "The same with a key in a Secret, which must exist and may be empty; see "
             "manifests/base/seal.yaml."},
};
/* clang-format on */

const struct section section_seals = {
    .name = "seals",
    .title = "Seals",
    ROWS(rows),
};

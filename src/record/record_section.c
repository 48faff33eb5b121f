/* SPDX-License-Identifier: Apache-2.0 */
#include "record/record_section.h"

#include "core/section/rows.h"

#define SETTINGS struct record_settings

/* clang-format off */
static const struct option rows[] = {
    {"record", PATH(file, "FILE", ""), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "Write down every event and every decision, for 'gpuledger replay'. Of objects only "
             "what decisions read is kept, which holds no environment and no Secrets, but names, "
             "labels and annotations. A file that is there becomes FILE.1."},
    {"record-max", SIZE(file_max, "256MiB", 1 << 16, INT64_C(1) << 40),
     FOR(COMMAND_SERVE),
     .help = "How large the file of --record grows before it becomes FILE.1, whose place it takes, "
             "and the next one begins with what is known by then."},
};
/* clang-format on */

const struct section section_record = {
    .name = "record",
    .title = "Recording",
    ROWS(rows),
};

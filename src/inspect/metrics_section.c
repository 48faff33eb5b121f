/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/metrics_section.h"

#include "core/section/rows.h"

#define SETTINGS struct metrics_settings

/* clang-format off */
static const struct option rows[] = {
    {"pod-metrics", BOOL(pods, "false"), FOR(COMMAND_SERVE),
     .help = "Also export what each container was granted of each card, with namespace, pod, "
             "container and the card's UUID, to be joined with what is measured of cards: two "
             "metrics with a series for every container and card."},
    {"card-metrics-max", INT(cards_max, "CARDS", "4096", 0, INT64_C(1) << 30),
     FOR(COMMAND_SERVE),
     .help = "Metrics have five series for each card. Of more cards than this they have only the "
             "sums of all; 0: never series for each."},
};
/* clang-format on */

const struct section section_metrics = {
    .name = "metrics",
    .title = "Metrics",
    ROWS(rows),
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/arrivals/arrivals_section.h"

#include "core/section/rows.h"
#include "queue/arrivals/arrivals.h"

#define SETTINGS struct arrivals_settings

/* clang-format off */
static const struct option rows[] = {
    {"arrival-hold", DURATION(hold_ms, "0s", 0, 60 * MINUTE_MS),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "Leave room to the pod that was created first, for so long, instead of giving it to "
             "whoever asks first; 0s: in no order."},
    {"arrival-places", INT(places, "N", "8", 0, ARRIVALS_PLACES_MAX),
     FOR(COMMAND_SERVE | COMMANDS_ASKING),
     .help = "With --arrival-hold: keep a place for each of the N oldest pods that fit nowhere, "
             "where least must become free for it, however long that takes. Younger pods pass where "
             "they fit beside it. 0: pods for which there is no room are passed."},
};
/* clang-format on */

const struct section section_arrivals = {
    .name = "arrivals",
    .title = "Order of arrival",
    ROWS(rows),
    .recorded = true,
};

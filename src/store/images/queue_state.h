/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What has come of the waiting of pods (queue/arrivals/arrivals.h), as a record has it:
 *
 *   {"schedulers":["default-scheduler"],"broughtBy":["ml"],
 *    "pods":[{"uid":"u1","asked":true,"asking":MS,"looked":MS,"until":MS,"hopeless":MS,"settled":true,
 *             "place":{"node":"n1","dialect":"gpushare","shares":[…],"ending":["u2"]}}]}
 *
 * "excused":true in place of "asking": it cannot ask. Without shares a place is only where the pod may go; shares are as a booking has them.
 */
#include "gate/part.h"
#include "json/json.h"

struct arrivals_image;
/* After all that books room: places are settled for the bookings of that moment. */
PART_ROW(arrivals, 110);

/* The image is complete. */
void queue_state_encode(struct json_writer *writer, struct arrivals_image *image);

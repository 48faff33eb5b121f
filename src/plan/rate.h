/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* No more than so many moves in any span of time, for all that ends pods and for what simulates it. Pure. */
#include <glib.h>
#include <stdint.h>

#define RATE_MINUTE_MS INT64_C(60000)
#define RATE_HOUR_MS INT64_C(3600000)
#define RATE_HOUR_MAX                                                                              \
    3600 /* of a bound on the hour: so many fit in what is written down (evict/moves.h) */

/* How long until another move may begin after those that began at `times_ms`, int64_t, in order; 0: now.
 * `most` 0: any number. */
int64_t rate_wait_ms(const GArray *times_ms, uint32_t most, int64_t span_ms, int64_t now_ms);
/* How many may begin now; UINT32_MAX: any number. */
uint32_t rate_left(const GArray *times_ms, uint32_t most, int64_t span_ms, int64_t now_ms);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* No more than so many moves in any hour, for whoever makes them and for whoever plays them. Pure. */
#include <glib.h>
#include <stdint.h>

#define HOURLY_MS INT64_C(3600000)
#define HOURLY_MAX 3600 /* of a bound: so many fit in what is written down (evict/moves.h) */

/* How long until another move may begin after those that began at `times_ms`, int64_t, in order; 0: now.
 * `per_hour` 0: any number. */
int64_t hourly_wait_ms(const GArray *times_ms, uint32_t per_hour, int64_t now_ms);
/* How many may begin now; UINT32_MAX: any number. */
uint32_t hourly_left(const GArray *times_ms, uint32_t per_hour, int64_t now_ms);

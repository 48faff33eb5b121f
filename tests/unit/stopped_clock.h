/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A clock that stands still, linked in the place of GLib's: it goes on by what the code under test sleeps,
 * which takes no time, and by clock_skip_ms(). Each test begins on Monday, 2026-01-05 at 12:00 UTC (clock_begin);
 * the monotonic clock never goes back. A thread that
 * waits for a monotonic time (base/worker.h) wakes once the clock has come to it. Waits by the clock on the wall,
 * as fake_server_wait has them, take real time. Any thread.
 */
#include <stdint.h>

/* Of a fixture: tests of one process (CK_FORK=no) begin alike. */
void clock_begin(void);
void clock_skip_ms(int64_t ms);
/* Since the beginning. */
int64_t clock_passed_ms(void);
/* Takes real time: until so many threads wait for a monotonic time that has not come. */
void clock_await_waiting(unsigned n);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads and time of one's own: the program's threads run one at a time, each until it waits, and
 * whose turn comes next is drawn by chance. Time passes only while everybody waits. So a run is the
 * same, step by step, whenever it has the same seed.
 *
 * At link time (--wrap) these take the place of pthread_create and _join, pthread_mutex_lock, the
 * condition variables, g_usleep, the clocks and g_rand_new. A lock that a thread finds taken was
 * held by one that waits for something else; that fails the run.
 */
#include <stdbool.h>
#include <stdint.h>

#define SIM_FOREVER INT64_MAX

/* Time starts anew; no thread may be left. */
void sim_reset(void);
/* Monotonic. */
int64_t sim_now_us(void);
/* The wall clock jumps; monotonic time does not. */
void sim_step_clock(int64_t by_us);

/* From now on a lock that is taken is waited for, that long at most: some are held across calls on purpose. */
void sim_bear_locks(int64_t us);

/* A thread that nobody joins. */
void sim_spawn(void (*run)(void *data), void *data);
/* Of a thread: waits until something is signalled, true, or the time has come. */
bool sim_wait(const void *what, int64_t until_us);
void sim_sleep(int64_t us);
void sim_signal(const void *what);

/* Of nobody's thread: lets one go on that can, if need be after the time until then. False: the
 * next would only go on after `until_us`, which it is now. */
bool sim_step(int64_t until_us);
/* Threads that have not ended. */
unsigned sim_alive(void);
/* Of nobody's thread: all end where they are, as with SIGKILL. What they hold is lost. */
void sim_kill(void);
/* After that: nobody will join those that have ended. */
void sim_forget_threads(void);

/* The record of what was decided, for comparison: NULL, or where to. */
void sim_trace_to(void *file);
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool sim_traces(void);

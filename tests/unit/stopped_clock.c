/* SPDX-License-Identifier: Apache-2.0 */
#include "stopped_clock.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>

#define START_US INT64_C(1000000000)
#define START_REAL_US INT64_C(1767614400000000)
#define WAITING_MAX 64 /* threads */
#define SLICE_US 2000  /* after which a thread that waits is woken, to look at the clock */

static _Atomic int64_t passed_us;
static _Atomic int64_t begun_us;                    /* of those, when the test began */
static _Atomic int64_t waits_until_us[WAITING_MAX]; /* 0: a free place */

void clock_begin(void)
{
    atomic_store(&begun_us, atomic_load(&passed_us));
}

void clock_skip_ms(int64_t ms)
{
    atomic_fetch_add(&passed_us, ms * 1000);
}

int64_t clock_passed_ms(void)
{
    return (atomic_load(&passed_us) - atomic_load(&begun_us)) / 1000;
}

/* The linker puts these in the place of the functions without the prefix, and calls those __real_…. */
gint64 __wrap_g_get_monotonic_time(void);
gint64 __wrap_g_get_real_time(void);
GDateTime *__wrap_g_date_time_new_now_utc(void);
void __wrap_g_usleep(gulong us);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
gint64 __real_g_get_monotonic_time(void);
gint64 __real_g_get_real_time(void);
void __real_g_usleep(gulong us);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);

gint64 __wrap_g_get_monotonic_time(void)
{
    return START_US + atomic_load(&passed_us);
}

gint64 __wrap_g_get_real_time(void)
{
    return START_REAL_US + atomic_load(&passed_us) - atomic_load(&begun_us);
}

GDateTime *__wrap_g_date_time_new_now_utc(void)
{
    g_autoptr(GDateTime) second =
        g_date_time_new_from_unix_utc(__wrap_g_get_real_time() / G_USEC_PER_SEC);

    return g_date_time_add(second, __wrap_g_get_real_time() % G_USEC_PER_SEC);
}

/* Others may be waiting for what this thread waits for. */
void __wrap_g_usleep(gulong us)
{
    atomic_fetch_add(&passed_us, (int64_t)us);
    __real_g_usleep(MIN(us, 500));
}

void clock_await_waiting(unsigned n)
{
    for (unsigned found = 0; found < n;) {
        found = 0;
        for (size_t i = 0; i < WAITING_MAX; i++)
            found += atomic_load(&waits_until_us[i]) > __wrap_g_get_monotonic_time();
        if (found < n)
            __real_g_usleep(200);
    }
}

static size_t take_place(int64_t until_us)
{
    for (size_t i = 0; i < WAITING_MAX; i++) {
        int64_t none = 0;
        if (atomic_compare_exchange_strong(&waits_until_us[i], &none, until_us))
            return i;
    }
    g_error("more than %d threads wait", WAITING_MAX);
}

static struct timespec timespec_of(int64_t us)
{
    return (struct timespec){us / G_USEC_PER_SEC, us % G_USEC_PER_SEC * 1000};
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    const int64_t until_us = until->tv_sec * G_USEC_PER_SEC + until->tv_nsec / 1000;

    if (until_us >= START_REAL_US) { /* the clock on the wall */
        const struct timespec real =
            timespec_of(until_us - __wrap_g_get_real_time() + __real_g_get_real_time());
        return __real_pthread_cond_timedwait(cond, mutex, &real);
    }
    if (__wrap_g_get_monotonic_time() >= until_us)
        return ETIMEDOUT;
    const size_t place = take_place(until_us);
    const struct timespec slice = timespec_of(__real_g_get_monotonic_time() + SLICE_US);
    __real_pthread_cond_timedwait(cond, mutex, &slice);
    atomic_store(&waits_until_us[place], 0);
    return 0; /* whatever has happened: who waits looks for itself, and comes again */
}

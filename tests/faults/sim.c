/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include "../prop/chance.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_SIZE ((size_t)2 << 20)
#define THREADS_MAX 128
#define START_REAL_US INT64_C(1767225600000000)
#define START_US INT64_C(1000000000)

struct thread {
    ucontext_t context;
    void *stack;
    bool alive, joined;
    const void *waits_for; /* NULL: for the time alone */
    int64_t until_us;      /* 0: can go on */
    bool signalled;
    void (*run)(void *data);
    void *(*routine)(void *data);
    void *data;
};

static struct {
    struct thread threads[THREADS_MAX];
    struct thread *current; /* NULL: nobody's */
    ucontext_t outside;
    unsigned alive;
    int64_t now_us, offset_us, bear_us;
    FILE *trace;
} sim;

void sim_reset(void)
{
    HOLDS(sim.alive == 0, "%u threads are left", sim.alive);
    sim.now_us = START_US;
    sim.offset_us = START_REAL_US - START_US;
}

int64_t sim_now_us(void)
{
    return sim.now_us;
}

void sim_bear_locks(int64_t us)
{
    sim.bear_us = us;
}

void sim_step_clock(int64_t by_us)
{
    sim.offset_us += by_us;
}

unsigned sim_alive(void)
{
    return sim.alive;
}

/* --- the record ----------------------------------------------------------------------------- */

void sim_trace_to(void *file)
{
    sim.trace = file;
    setvbuf(sim.trace, NULL, _IOLBF, 0); /* a failure ends the program at once */
}

bool sim_traces(void)
{
    return sim.trace != NULL;
}

void sim_trace(const char *format, ...)
{
    va_list arguments;

    if (!sim.trace)
        return;
    fprintf(sim.trace, "%" G_GINT64_FORMAT ".%06d ", (sim.now_us - START_US) / G_USEC_PER_SEC,
            (int)((sim.now_us - START_US) % G_USEC_PER_SEC));
    va_start(arguments, format);
    vfprintf(sim.trace, format, arguments);
    va_end(arguments);
    fputc('\n', sim.trace);
}

/* --- threads -------------------------------------------------------------------------------- */

static void leave(void)
{
    struct thread *self = sim.current;
    swapcontext(&self->context, &sim.outside);
}

static void begin(void)
{
    struct thread *self = sim.current;

    if (self->routine)
        self->routine(self->data);
    else
        self->run(self->data);
    self->alive = false;
    sim.alive--;
    sim_signal(self);
    leave();
}

static struct thread *spawn(void)
{
    struct thread *thread = NULL;

    for (unsigned i = 0; i < THREADS_MAX && !thread; i++) {
        if (!sim.threads[i].alive && !sim.threads[i].joined)
            thread = &sim.threads[i];
    }
    HOLDS(thread, "more than %d threads", THREADS_MAX);
    if (!thread->stack) {
        thread->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        HOLDS(thread->stack != MAP_FAILED, "no memory for a stack");
    }
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&thread->context, begin, 0);
    thread->alive = true;
    thread->until_us = 0;
    thread->waits_for = NULL;
    sim.alive++;
    return thread;
}

void sim_spawn(void (*run)(void *data), void *data)
{
    struct thread *thread = spawn();

    thread->run = run;
    thread->routine = NULL;
    thread->data = data;
}

bool sim_wait(const void *what, int64_t until_us)
{
    struct thread *self = sim.current;

    HOLDS(self, "nobody's thread cannot wait");
    self->waits_for = what;
    self->until_us = MAX(until_us, 1);
    self->signalled = false;
    leave();
    return self->signalled;
}

void sim_sleep(int64_t us)
{
    sim_wait(NULL, sim.now_us + MAX(us, 0));
}

void sim_signal(const void *what)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        struct thread *thread = &sim.threads[i];
        if (thread->alive && thread->until_us && what && thread->waits_for == what) {
            thread->signalled = true;
            thread->until_us = 0;
        }
    }
}

bool sim_step(int64_t until_us)
{
    struct thread *ready[THREADS_MAX];
    int64_t next_us = SIM_FOREVER;
    uint32_t n = 0;

    HOLDS(!sim.current, "a thread cannot let others go on");
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        struct thread *thread = &sim.threads[i];
        if (!thread->alive)
            continue;
        if (thread->until_us <= sim.now_us)
            ready[n++] = thread;
        else
            next_us = MIN(next_us, thread->until_us);
    }
    if (n == 0) {
        sim.now_us = MAX(sim.now_us, MIN(next_us, until_us));
        if (next_us > until_us || next_us == SIM_FOREVER)
            return false;
        return sim_step(until_us);
    }
    sim.current = ready[chance_below(n)];
    sim.current->until_us = 0;
    sim.current->waits_for = NULL;
    swapcontext(&sim.outside, &sim.current->context);
    sim.current = NULL;
    return true;
}

void sim_kill(void)
{
    HOLDS(!sim.current, "a thread cannot kill all");
    for (unsigned i = 0; i < THREADS_MAX; i++)
        sim.threads[i].alive = false;
    sim.alive = 0;
}

void sim_forget_threads(void)
{
    HOLDS(sim.alive == 0, "%u threads are left", sim.alive);
    for (unsigned i = 0; i < THREADS_MAX; i++)
        sim.threads[i].joined = false;
}

/* --- what the program calls ----------------------------------------------------------------- */

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *data);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
void __wrap_g_usleep(gulong us);
gint64 __wrap_g_get_monotonic_time(void);
gint64 __wrap_g_get_real_time(void);
GRand *__wrap_g_rand_new(void);

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *data)
{
    struct thread *thread = spawn();

    thread->routine = routine;
    thread->data = data;
    thread->joined = true; /* the place is kept until then */
    *ret_thread = (pthread_t)thread;
    return 0;
}

int __wrap_pthread_join(pthread_t handle, void **ret_value)
{
    struct thread *thread = (struct thread *)handle;

    while (thread->alive) {
        if (sim.current)
            sim_wait(thread, SIM_FOREVER);
        else
            HOLDS(sim_step(SIM_FOREVER), "a thread never ends");
    }
    thread->joined = false;
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    const int64_t most_us = sim.now_us + sim.bear_us;

    while (sim.bear_us > 0 && sim.now_us < most_us && pthread_mutex_trylock(mutex) != 0)
        sim_sleep(1000);
    if (sim.bear_us > 0 && sim.now_us < most_us)
        return 0;
    HOLDS(pthread_mutex_trylock(mutex) == 0, "a lock is held by a thread that waits");
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    int64_t until_us = until->tv_sec * G_USEC_PER_SEC + (until->tv_nsec + 999) / 1000;

    if (until_us <= sim.now_us)
        return ETIMEDOUT;
    pthread_mutex_unlock(mutex);
    bool signalled = sim_wait(condition, until_us);
    __wrap_pthread_mutex_lock(mutex);
    return signalled ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    sim_wait(condition, SIM_FOREVER);
    return __wrap_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    sim_signal(condition);
    return 0;
}

/* One too many may wake up, as with any condition variable. */
int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    sim_signal(condition);
    return 0;
}

void __wrap_g_usleep(gulong us)
{
    sim_sleep((int64_t)us);
}

gint64 __wrap_g_get_monotonic_time(void)
{
    return sim.now_us;
}

gint64 __real_g_get_real_time(void);

gint64 __wrap_g_get_real_time(void)
{
    if (sim.now_us == 0) /* a seed is wanted */
        return __real_g_get_real_time();
    return sim.now_us + sim.offset_us;
}

GRand *__wrap_g_rand_new(void)
{
    return g_rand_new_with_seed(chance_below(UINT32_MAX));
}

GDateTime *__wrap_g_date_time_new_now_utc(void);

GDateTime *__wrap_g_date_time_new_now_utc(void)
{
    return g_date_time_new_from_unix_utc(__wrap_g_get_real_time() / G_USEC_PER_SEC);
}

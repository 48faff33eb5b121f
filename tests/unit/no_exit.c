/* SPDX-License-Identifier: Apache-2.0 */
#include "no_exit.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool has_ended;
static int status;

/* The linker puts this in the place of the function without the prefix, and calls that __real_…. */
__attribute__((noreturn)) void __wrap__exit(int code);
__attribute__((noreturn)) void __real__exit(int code);

void __wrap__exit(int code)
{
    if (gettid() == getpid())
        __real__exit(code);
    pthread_mutex_lock(&lock);
    has_ended = true;
    status = code;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_exit(NULL);
}

int no_exit_await(void)
{
    pthread_mutex_lock(&lock);
    while (!has_ended)
        pthread_cond_wait(&changed, &lock);
    has_ended = false;
    const int code = status;
    pthread_mutex_unlock(&lock);
    return code;
}

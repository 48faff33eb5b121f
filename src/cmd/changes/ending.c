/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/changes/ending.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define BY_SIGNAL 128 /* as shells tell it */

struct ending {
    struct keeping *keeping;
    pthread_t watcher;
};

static void end_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
}

static void *watch_signals(void *data)
{
    const struct ending *ending = data;
    sigset_t set;
    int number = 0;

    end_signals(&set);
    sigwait(&set, &number);
    keeping_end(ending->keeping);
    _exit(BY_SIGNAL + number);
}

void ending_block_signals(void)
{
    sigset_t set;

    end_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

struct ending *ending_new(struct keeping *keeping)
{
    struct ending *ending = g_new0(struct ending, 1);

    ending->keeping = keeping;
    if (pthread_create(&ending->watcher, NULL, watch_signals, ending) != 0)
        g_error("no thread for signals");
    return ending;
}

void ending_free(struct ending *ending)
{
    pthread_cancel(ending->watcher);
    pthread_join(ending->watcher, NULL);
    g_free(ending);
}

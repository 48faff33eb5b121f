/* SPDX-License-Identifier: Apache-2.0 */
#include "base/longest.h"

#include <pthread.h>
#include <string.h>

#define SECOND_US INT64_C(1000000)

/* The longest call that ended in one second. */
struct second {
    int64_t number; /* of the clock; 0: none */
    int64_t duration_us;
    enum verb verb;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct second seconds[LONGEST_WINDOW_S];

void longest_note(enum verb verb, int64_t duration_us, int64_t now_us)
{
    const int64_t number = now_us / SECOND_US + 1;
    struct second *second = &seconds[number % LONGEST_WINDOW_S];

    pthread_mutex_lock(&lock);
    if (second->number != number)
        *second = (struct second){.number = number, .verb = verb};
    if (duration_us > second->duration_us) {
        second->duration_us = duration_us;
        second->verb = verb;
    }
    pthread_mutex_unlock(&lock);
}

int64_t longest_call(int64_t now_us, enum verb *ret_verb)
{
    const int64_t number = now_us / SECOND_US + 1;
    int64_t longest_us = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < G_N_ELEMENTS(seconds); i++) {
        const struct second *second = &seconds[i];
        if (second->number <= number - LONGEST_WINDOW_S || second->duration_us <= longest_us)
            continue;
        longest_us = second->duration_us;
        *ret_verb = second->verb;
    }
    pthread_mutex_unlock(&lock);
    return longest_us;
}

void longest_write(GString *text, int64_t now_us)
{
    enum verb verb;
    const int64_t us = longest_call(now_us, &verb);

    g_string_append_printf(text,
                           "# HELP gpuledger_longest_call_seconds The longest call of filter, "
                           "prioritize or preempt that ended within the last minute.\n"
                           "# TYPE gpuledger_longest_call_seconds gauge\n"
                           "gpuledger_longest_call_seconds %" G_GINT64_FORMAT ".%06" G_GINT64_FORMAT
                           "\n",
                           us / SECOND_US, us % SECOND_US);
}

void longest_clear(void)
{
    pthread_mutex_lock(&lock);
    memset(seconds, 0, sizeof seconds);
    pthread_mutex_unlock(&lock);
}

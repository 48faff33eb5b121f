/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One line per event on standard error, as logfmt or JSON. Fields, not sentences. Core and wire
 * never log: they return errors, and the layer that decides logs once. Any thread.
 *
 * A line is one write(2), so lines of threads and processes that share a pipe do not mix. Values
 * are cut at LOG_VALUE_MAX bytes, since outsiders influence some of them.
 */
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_VALUE_MAX 1024

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

struct log_field {
    const char *key;
    const char *text; /* NULL: `number` is meant */
    int64_t number;
};
#define LOG_TEXT(key, value) ((struct log_field){key, (value) ? (value) : "", 0})
#define LOG_NUMBER(key, value) ((struct log_field){key, NULL, (int64_t)(value)})

/* Takes effect at once, in all threads. The first call also sends GLib's own messages this way. */
void log_configure(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *message, const struct log_field *fields,
               size_t n_fields);

/* log_event(LOG_LEVEL_INFO, "bound", LOG_TEXT("pod", name), LOG_NUMBER("card", 3)); */
#define log_event(level, message, ...)                                                             \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const struct log_field log_fields_[] = {__VA_ARGS__};                                  \
            log_write(level, message, log_fields_, G_N_ELEMENTS(log_fields_));                     \
        }                                                                                          \
    } while (0)

/* --- repeats --------------------------------------------------------------------------------- */

#define LOG_LIMIT_BURST 5
#define LOG_LIMIT_WINDOW_MS 10000

/* One call site's count; zero-initialised but for the lock. */
struct log_limit {
    pthread_mutex_t lock;
    int64_t window_ms; /* start of the current window; 0 before the first event */
    uint64_t seen;     /* in the current window */
};
#define LOG_LIMIT_INIT {PTHREAD_MUTEX_INITIALIZER, 0, 0}

/* Whether the event at `now_ms` (any clock that never goes back, above zero) may be written.
 * `ret_suppressed` is how many of the window before were not; set for the first of a window. */
bool log_limit_pass(struct log_limit *limit, int64_t now_ms, uint64_t *ret_suppressed);

/* log_event, at most LOG_LIMIT_BURST times in LOG_LIMIT_WINDOW_MS for this place in the source.
 * The first event of a later window is preceded by a line with "suppressed", the number of those
 * that were dropped. */
#define log_event_limited(level, message, ...)                                                     \
    do {                                                                                           \
        static struct log_limit log_limit_ = LOG_LIMIT_INIT;                                       \
        uint64_t log_suppressed_ = 0;                                                              \
        if (log_enabled(level) &&                                                                  \
            log_limit_pass(&log_limit_, g_get_monotonic_time() / 1000, &log_suppressed_)) {        \
            if (log_suppressed_ > 0)                                                               \
                log_event(level, message, LOG_NUMBER("suppressed", log_suppressed_));              \
            log_event(level, message, __VA_ARGS__);                                                \
        }                                                                                          \
    } while (0)

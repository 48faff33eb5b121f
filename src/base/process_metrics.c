/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_metrics.h"

#include "base/metrics_text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The n-th (from 1) space-separated number of a one-line file of /proc, after the last ')';
 * proc(5). -1 if it cannot be read. */
static int64_t proc_number(const char *path, unsigned n)
{
    g_autofree char *text = NULL;
    const char *at;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return -1;
    at = strrchr(text, ')');
    at = at ? at + 1 : text;
    at += strspn(at, " ");
    while (--n > 0) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return g_ascii_isdigit(*at) ? g_ascii_strtoll(at, NULL, 10) : -1;
}

/* Unix time of the process's start: field 22 of /proc/self/stat counts from boot. */
static int64_t start_time_us(void)
{
    static atomic_int_fast64_t known;
    int64_t start = atomic_load(&known);

    if (start == 0) {
        int64_t ticks = proc_number("/proc/self/stat", 20);
        struct timespec since_boot;

        if (ticks < 0)
            return -1;
        clock_gettime(CLOCK_BOOTTIME, &since_boot);
        start = g_get_real_time() - (int64_t)since_boot.tv_sec * 1000000 -
                since_boot.tv_nsec / 1000 + ticks * 1000000 / sysconf(_SC_CLK_TCK);
        atomic_store(&known, start);
    }
    return start;
}

static int64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * (int64_t)1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static int64_t resident_bytes(void)
{
    int64_t pages = proc_number("/proc/self/statm", 2);

    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

static int64_t open_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    int64_t n = -1; /* the directory's own */

    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

static int64_t max_fds(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (int64_t)limit.rlim_cur : -1;
}

static const struct process_row {
    const char *name;
    const char *type;
    const char *help;
    int64_t (*read)(void);
    bool microseconds; /* to be written as seconds */
} process_rows[] = {
    {"process_start_time_seconds", "gauge", "Unix time at which the process started.",
     start_time_us, true},
    {"process_cpu_seconds_total", "counter", "User and system time spent.", cpu_us, true},
    {"process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes, false},
    {"process_open_fds", "gauge", "Open file descriptors.", open_fds, false},
    {"process_max_fds", "gauge", "File descriptors that may be open.", max_fds, false},
};

static void row_write(GString *text, const struct process_row *row)
{
    int64_t value = row->read();

    if (value < 0)
        return; /* better absent than wrong */
    metrics_append_head(text, row->name, row->type, row->help);
    g_string_append_printf(text, "%s ", row->name);
    if (row->microseconds)
        metrics_append_seconds(text, (uint64_t)value);
    else
        g_string_append_printf(text, "%" G_GINT64_FORMAT, value);
    g_string_append_c(text, '\n');
}

void process_metrics_write(GString *text)
{
    for (size_t i = 0; i < G_N_ELEMENTS(process_rows); i++)
        row_write(text, &process_rows[i]);
}

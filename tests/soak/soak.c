/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one pod after the other against a running program with a saved cluster: add, filter,
 * bind, and, some pods later, delete. Every answer is checked; for each part of the run one line
 * says what the process used and how long calls took.
 */
#include "../bench/client.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MAX 8 /* that a pod asks for, 1 to this */

static gint pid, scheduler_port, operations_port;
static gint64 cycles = 20000;
static gint parts = 10, alive = 64, nodes = 8, node_units = 64;

static const GOptionEntry entries[] = {
    {"pid", 0, 0, G_OPTION_ARG_INT, &pid, "the program", "PID"},
    {"scheduler", 0, 0, G_OPTION_ARG_INT, &scheduler_port, "its port for calls", "PORT"},
    {"operations", 0, 0, G_OPTION_ARG_INT, &operations_port, "its other port", "PORT"},
    {"cycles", 0, 0, G_OPTION_ARG_INT64, &cycles, "pods in all", "N"},
    {"parts", 0, 0, G_OPTION_ARG_INT, &parts, "lines in the table", "N"},
    {"alive", 0, 0, G_OPTION_ARG_INT, &alive, "pods at a time", "N"},
    {"nodes", 0, 0, G_OPTION_ARG_INT, &nodes, "named node-0 and on", "N"},
    {"node-units", 0, 0, G_OPTION_ARG_INT, &node_units, "of GPU memory on each", "N"},
    {0},
};

enum call { CALL_ADD, CALL_FILTER, CALL_BIND, CALL_DELETE, CALL_N };

struct pod {
    int units;
    int node; /* -1: not bound */
};

struct soak {
    struct client scheduler, operations;
    GString *request, *body, *names;
    struct pod *pods; /* a ring of `alive` */
    int *used;        /* units by node */
    GArray *times_us[CALL_N];
};

G_GNUC_NORETURN G_GNUC_PRINTF(1, 2) static void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* --- what the process uses ------------------------------------------------------------------ */

static long status_value(const char *key)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", pid);
    g_autofree char *text = NULL;
    const char *at;

    if (!g_file_get_contents(path, &text, NULL, NULL) || !(at = strstr(text, key)))
        die("there is no process %d", pid);
    return strtol(at + strlen(key), NULL, 10);
}

static unsigned count_files(void)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", pid);
    DIR *directory = opendir(path);
    unsigned n = 0;

    if (!directory)
        die("%s cannot be read", path);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n - 2; /* . and .. */
}

/* --- calls ---------------------------------------------------------------------------------- */

static const char *ask(struct soak *soak, enum call call, const char *method, const char *path)
{
    struct client *client =
        call == CALL_FILTER || call == CALL_BIND ? &soak->scheduler : &soak->operations;

    client_write(soak->request, method, path, soak->body->str, soak->body->len);
    int64_t took_us = client_call(client, soak->request);
    g_array_append_val(soak->times_us[call], took_us);
    return client_body(client);
}

static void write_pod(GString *text, int64_t i, int units)
{
    g_string_append_printf(
        text,
        "{\"metadata\":{\"name\":\"soak-%" G_GINT64_FORMAT "\",\"namespace\":"
        "\"test\",\"uid\":\"uid-%" G_GINT64_FORMAT "\"},\"spec\":{\"containers\":"
        "[{\"name\":\"main\",\"resources\":{\"limits\":"
        "{\"aliyun.com/gpu-mem\":\"%d\"}}}]},\"status\":{\"phase\":\"Pending\"}}",
        i, i, units);
}

static void add_pod(struct soak *soak, int64_t i, int units)
{
    g_string_truncate(soak->body, 0);
    write_pod(soak->body, i, units);
    ask(soak, CALL_ADD, "POST", "/api/v1/snapshot/pods");
    if (soak->operations.status != 201)
        die("pod %" G_GINT64_FORMAT " was not added: %d", i, soak->operations.status);
}

/* A node that the filter lets pass, or -1. */
static int filter_pod(struct soak *soak, int64_t i, int units)
{
    static const char begin[] = "\"NodeNames\":[";

    g_string_assign(soak->body, "{\"Pod\":");
    write_pod(soak->body, i, units);
    g_string_append_printf(soak->body, ",\"NodeNames\":[%s]}", soak->names->str);
    const char *answer = ask(soak, CALL_FILTER, "POST", "/gpushare-scheduler/filter");
    const char *passed = strstr(answer, begin);
    int node;
    if (!passed || !strstr(answer, "\"Error\":\"\""))
        die("filter: %s", answer);
    passed += strlen(begin);
    if (*passed == ']')
        return -1;
    if (sscanf(passed, "\"node-%d\"", &node) != 1 || node < 0 || node >= nodes)
        die("filter: %s", answer);
    return node;
}

static void bind_pod(struct soak *soak, int64_t i, int node)
{
    g_string_printf(soak->body,
                    "{\"PodName\":\"soak-%" G_GINT64_FORMAT "\",\"PodNamespace\":\"test\","
                    "\"PodUID\":\"uid-%" G_GINT64_FORMAT "\",\"Node\":\"node-%d\"}",
                    i, i, node);
    const char *answer = ask(soak, CALL_BIND, "POST", "/gpushare-scheduler/bind");
    if (strcmp(answer, "{\"Error\":\"\"}") != 0)
        die("bind of pod %" G_GINT64_FORMAT ": %s", i, answer);
}

static void delete_pod(struct soak *soak, int64_t i)
{
    struct pod *pod = &soak->pods[i % alive];
    g_autofree char *path = g_strdup_printf("/api/v1/snapshot/pods/test/soak-%" G_GINT64_FORMAT, i);

    g_string_truncate(soak->body, 0);
    ask(soak, CALL_DELETE, "DELETE", path);
    if (soak->operations.status != 204)
        die("pod %" G_GINT64_FORMAT " was not deleted: %d", i, soak->operations.status);
    if (pod->node >= 0)
        soak->used[pod->node] -= pod->units;
}

static void cycle(struct soak *soak, int64_t i)
{
    struct pod *pod = &soak->pods[i % alive];

    if (i >= alive)
        delete_pod(soak, i - alive);
    *pod = (struct pod){.units = 1 + (int)(i * 7 % UNITS_MAX), .node = -1};
    add_pod(soak, i, pod->units);
    pod->node = filter_pod(soak, i, pod->units);
    if (pod->node < 0)
        die("no node for pod %" G_GINT64_FORMAT, i);
    bind_pod(soak, i, pod->node);
    soak->used[pod->node] += pod->units;
    if (soak->used[pod->node] > node_units)
        die("node-%d was given %d of %d units", pod->node, soak->used[pod->node], node_units);
}

/* --- the table ------------------------------------------------------------------------------ */

static gint compare_times(gconstpointer a, gconstpointer b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void print_times(GArray *times_us)
{
    if (times_us->len == 0)
        return;
    g_array_sort(times_us, compare_times);
    printf("  %5" G_GINT64_FORMAT " %6" G_GINT64_FORMAT " %7" G_GINT64_FORMAT,
           g_array_index(times_us, int64_t, times_us->len / 2),
           g_array_index(times_us, int64_t, times_us->len * 99 / 100),
           g_array_index(times_us, int64_t, times_us->len - 1));
    g_array_set_size(times_us, 0);
}

static void print_line(struct soak *soak, int64_t done, double seconds)
{
    printf("%9" G_GINT64_FORMAT "  %7ld  %5u  %7ld  %8.0f", done, status_value("VmRSS:"),
           count_files(), status_value("Threads:"), seconds > 0 ? cycles / parts / seconds : 0);
    print_times(soak->times_us[CALL_FILTER]);
    print_times(soak->times_us[CALL_BIND]);
    putchar('\n');
    fflush(stdout);
    g_array_set_size(soak->times_us[CALL_ADD], 0);
    g_array_set_size(soak->times_us[CALL_DELETE], 0);
}

static void run(struct soak *soak)
{
    printf("   cycles  RSS_KiB  files  threads  cycles/s  "
           "filter p50,p99,max us  bind p50,p99,max us\n");
    print_line(soak, 0, 0);
    int64_t done = 0;
    for (int part = 1; part <= parts; part++) {
        int64_t start_us = g_get_monotonic_time();

        for (; done < cycles * part / parts; done++)
            cycle(soak, done);
        print_line(soak, done, (double)(g_get_monotonic_time() - start_us) / 1e6);
    }
    for (int64_t i = MAX(done - alive, 0); i < done; i++)
        delete_pod(soak, i);
    for (int i = 0; i < nodes; i++) {
        if (soak->used[i] != 0)
            die("node-%d is not empty", i);
    }
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) failure = NULL;
    struct soak soak = {0};

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &failure))
        die("soak: %s", failure->message);
    if (pid <= 0 || cycles < parts || parts < 1 || alive < 1 || nodes < 1)
        die("soak: --pid, --scheduler and --operations are needed, and sensible numbers");
    soak.request = g_string_new(NULL);
    soak.body = g_string_new(NULL);
    soak.names = g_string_new(NULL);
    for (int i = 0; i < nodes; i++)
        g_string_append_printf(soak.names, "%s\"node-%d\"", i ? "," : "", i);
    soak.pods = g_new0(struct pod, (gsize)alive);
    soak.used = g_new0(int, (gsize)nodes);
    for (size_t i = 0; i < CALL_N; i++)
        soak.times_us[i] = g_array_new(FALSE, FALSE, sizeof(int64_t));
    client_connect(&soak.scheduler, (uint16_t)scheduler_port);
    client_connect(&soak.operations, (uint16_t)operations_port);
    run(&soak);
    client_close(&soak.scheduler);
    client_close(&soak.operations);
    for (size_t i = 0; i < CALL_N; i++)
        g_array_unref(soak.times_us[i]);
    g_free(soak.pods);
    g_free(soak.used);
    g_string_free(soak.request, TRUE);
    g_string_free(soak.body, TRUE);
    g_string_free(soak.names, TRUE);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What readers cost whoever decides, in a large cluster: scrapers of /metrics and /api/v1/nodes, explain,
 * fit, audits, a record that is begun anew, and a feed of news, all at once, as fast as they are
 * answered. While holds are measured, thousands of pods and groups wait, and thousands of nodes are left
 * out or have pods that nobody serves.
 *
 * First filter's times beside them, against those beside the same readers of a second cluster in the
 * same process: these burn the same CPU and take no lock of ours. Then how long each holds the lock, in
 * CPU time of its thread; the program fails if anything but a decision holds it for too long.
 *
 * GPULEDGER_BENCH_NODES, _CARDS, _PODS, _WAITING (pods), _GROUPS, _UNSERVED (pods), _REJECTING (nodes),
 * _SECONDS (of a round), _ROUNDS say how large, how long.
 */
#include "audit/auditor.h"
#include "base/log.h"
#include "client.h"
#include "crowd_queue.h"
#include "http/outgoing.h"
#include "http/routes.h"
#include "record/recorder.h"
#include "holds.h"
#include "gate/node_backoff/node_backoff.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_US 100
#define NAMES_ASKED 5000 /* names in a call of filter, at most */
#define NEWS_PER_SECOND 1000
#define RECORD_MAX (8 << 20)

/* --- a cluster that nobody can ask ------------------------------------------------------------- */

struct made_up {
    struct cluster cluster;
    struct crowd crowd;
    struct crowd_queue queue;
};

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    return OUTCOME_NOT_FOUND;
}

static enum outcome list(struct cluster *cluster, enum feed feed, struct store *store, GError **error)
{
    crowd_list(&((struct made_up *)cluster)->crowd, store, feed);
    return OUTCOME_OK;
}

static const struct cluster_ops made_up_ops = {.name = "made up", .get_pod = get_pod, .list = list};

static int setting(const char *name, int otherwise)
{
    const char *text = g_getenv(name);
    return text ? atoi(text) : otherwise;
}

/* --- a program -------------------------------------------------------------------------------- */

struct program {
    struct made_up made_up;
    struct extender extender;
    struct auditor *auditor;
    struct operations operations;
    struct routes scheduler_table, operations_table;
    struct outgoing *outgoing;
    struct server *scheduler, *ops;
    char *record;
    struct recorder *recorder;
};

static struct server *listen_with(struct program *program, struct routes *table)
{
    g_autoptr(GError) failure = NULL;
    struct server *server = server_start(
        &(struct server_options){
            .name = "bench",
            .host = "127.0.0.1",
            .mode = SERVER_THREADS,
            .connections_max = 64,
            .idle_timeout_s = 120,
            .transfer_timeout_ms = 60000,
            .body_max = SERVER_BODY_MAX,
            .bodies_max = SERVER_BODIES_MAX,
            .outgoing = program->outgoing,
            .handler = routes_handle,
            .data = table,
        },
        &failure);

    if (!server)
        g_error("%s", failure->message);
    return server;
}

static void program_start(struct program *program, const struct crowd *crowd,
                          const struct crowd_queue *queue, struct holds *holds)
{
    g_autoptr(GError) failure = NULL;
    struct store_options options = {.patience_ms = 10000,
                                    .hold_ms = 60000,
                                    .n_places = 8,
                                    .gangs = true,
                                    NODE_BACKOFF_SETTINGS(CROWD_REJECTS, 600000)};

    program->made_up = (struct made_up){{&made_up_ops}, *crowd, *queue};
    program->extender = (struct extender){
        .store = store_new(&options),
        .cluster = &program->made_up.cluster,
        .bind_timeout_ms = 1000,
    };
    if (holds)
        holds_measure(holds, program->extender.store);
    const int file = g_file_open_tmp("gpuledger-bench-XXXXXX", &program->record, &failure);
    if (file < 0)
        g_error("%s", failure->message);
    close(file);
    program->recorder =
        recorder_new(&(struct recorder_options){program->record, RECORD_MAX, "{}"}, &failure);
    if (!program->recorder)
        g_error("%s", failure->message);
    crowd_fill(crowd, program->extender.store);
    crowd_queue_fill(queue, crowd, &program->extender);
    recorder_observe(program->recorder, program->extender.store);
    program->auditor = auditor_start(&program->extender,
                                     &(struct auditor_options){.settle_ms = 1, .look_ms = 1000},
                                     &failure);
    if (!program->auditor)
        g_error("%s", failure->message);
    program->outgoing = outgoing_new(ANSWERS_MAX);
    program->operations =
        (struct operations){.extender = &program->extender, .auditor = program->auditor,
                            .card_metrics_max = setting("GPULEDGER_BENCH_CARD_METRICS", 4096)};
    program->scheduler_table = (struct routes){scheduler_routes, &program->extender};
    program->operations_table = (struct routes){operations_routes, &program->operations};
    program->scheduler = listen_with(program, &program->scheduler_table);
    program->ops = listen_with(program, &program->operations_table);
}

static void program_stop(struct program *program)
{
    g_autofree char *old = g_strconcat(program->record, ".1", NULL);

    server_free(program->scheduler);
    server_free(program->ops);
    auditor_free(program->auditor);
    recorder_free(program->recorder);
    outgoing_free(program->outgoing);
    store_free(program->extender.store);
    unlink(program->record);
    unlink(old);
    g_free(program->record);
}

/* --- readers ---------------------------------------------------------------------------------- */

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"web-0\",\"namespace\":\"default\",\"uid\":\"%s\"},\"spec\":{"      \
    "\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/web:1\",\"resources\":{"      \
    "\"limits\":{\"aliyun.com/gpu-mem\":\"%s\"}}}]},\"status\":{\"phase\":\"Pending\"}}"

static const struct reader_kind {
    const char *method, *path;
    const char *ask; /* how much the pod in the body asks for; NULL: there is none */
    bool fit;
    int n; /* how many ask */
} kinds[] = {
    {"GET", "/metrics", NULL, false, 16},
    {"GET", "/api/v1/nodes", NULL, false, 4},
    {"POST", "/api/v1/explain", "99", false, 1},
    {"POST", "/api/v1/fit", "99", true, 1},
    {"POST", "/api/v1/audit", NULL, false, 1},
};

struct reader {
    const struct reader_kind *kind;
    struct program *program;
    gint *stop;
    pthread_t thread;
    uint64_t answers;
    size_t bytes; /* of the last */
};

static void *read_on(void *data)
{
    struct reader *reader = data;
    const struct reader_kind *kind = reader->kind;
    g_autoptr(GString) request = g_string_new(NULL);
    g_autofree char *pod = kind->ask ? g_strdup_printf(POD, "", kind->ask) : g_strdup("");
    g_autofree char *fit = g_strdup_printf("{\"pod\":%s,\"replicas\":100}", pod);
    const char *body = kind->fit ? fit : pod;
    struct client client;

    client_write(request, kind->method, kind->path, body, strlen(body));
    client_connect(&client, server_port(reader->program->ops));
    while (!g_atomic_int_get(reader->stop)) {
        client_call(&client, request);
        if (client.status == 503 || client.status == 202) /* as who retries does */
            g_usleep(20000);
        else
            reader->bytes = client.answer->len;
        reader->answers += client.status != 503;
    }
    client_close(&client);
    return NULL;
}

/* What the watch brings: pods whose annotations change, and others that wait. */
static void *bring_news(void *data)
{
    struct reader *reader = data;
    const struct crowd *crowd = &reader->program->made_up.crowd;
    const struct crowd_queue *queue = &reader->program->made_up.queue;
    struct store *store = reader->program->extender.store;
    int64_t next_us = g_get_monotonic_time();

    for (int i = 0; !g_atomic_int_get(reader->stop); i++) {
        crowd_put_pod(crowd, store, (int)((int64_t)i * 7919 % crowd->pods), i);
        if (queue->waiting > 0 && i % 4 == 0)
            crowd_queue_change(queue, store, i / 4, i / 4 / queue->waiting);
        next_us += 1000000 / NEWS_PER_SECOND;
        const int64_t now_us = g_get_monotonic_time();
        if (next_us > now_us)
            g_usleep((gulong)(next_us - now_us));
    }
    return NULL;
}

struct readers {
    GArray *all; /* struct reader */
    gint stop;
};

static void readers_start(struct readers *readers, struct program *program)
{
    readers->stop = 0;
    readers->all = g_array_new(FALSE, TRUE, sizeof(struct reader));
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        for (int i = 0; i < kinds[k].n; i++) {
            const struct reader reader = {&kinds[k], program, &readers->stop};
            g_array_append_val(readers->all, reader);
        }
    }
    const struct reader news = {NULL, program, &readers->stop};
    g_array_append_val(readers->all, news);
    for (guint i = 0; i < readers->all->len; i++) {
        struct reader *reader = &g_array_index(readers->all, struct reader, i);
        pthread_create(&reader->thread, NULL, reader->kind ? read_on : bring_news, reader);
    }
}

static void readers_stop(struct readers *readers, FILE *file)
{
    g_atomic_int_set(&readers->stop, 1);
    for (guint i = 0; i < readers->all->len; i++)
        pthread_join(g_array_index(readers->all, struct reader, i).thread, NULL);
    for (size_t k = 0; file && k < G_N_ELEMENTS(kinds); k++) {
        uint64_t answers = 0;
        size_t bytes = 0;
        for (guint i = 0; i < readers->all->len; i++) {
            const struct reader *reader = &g_array_index(readers->all, struct reader, i);
            answers += reader->kind == &kinds[k] ? reader->answers : 0;
            bytes = MAX(bytes, reader->kind == &kinds[k] ? reader->bytes : 0);
        }
        fprintf(file, "  %-18s %7" G_GUINT64_FORMAT " answers, the last %9zu bytes\n", kinds[k].path,
                answers, bytes);
    }
    g_array_unref(readers->all);
}

/* --- filter ----------------------------------------------------------------------------------- */

static GString *filter_request(const struct crowd *crowd)
{
    GString *body = g_string_new("{\"Pod\":");

    g_string_append_printf(body, POD, "11111111-2222-4333-8444-555555555555", "4");
    g_string_append(body, ",\"NodeNames\":[");
    for (int i = 0; i < MIN(crowd->nodes, NAMES_ASKED); i++) {
        g_autofree char *name = crowd_node_name(i);
        g_string_append_printf(body, "%s\"%s\"", i ? "," : "", name);
    }
    g_string_append(body, "],\"Nodes\":null}");
    GString *request = client_prepare("/gpushare-scheduler/filter", body->str, body->len);
    g_string_free(body, TRUE);
    return request;
}

static void filter_for(struct program *program, const GString *request, double seconds,
                       GArray *times_us)
{
    const int64_t until_us = g_get_monotonic_time() + (int64_t)(seconds * 1e6);
    struct client client;

    client_connect(&client, server_port(program->scheduler));
    for (int i = 0; g_get_monotonic_time() < until_us; i++) {
        const int64_t took_us = client_call(&client, request);
        if (i > 0)
            g_array_append_val(times_us, took_us);
        g_usleep(1000); /* as the rest of a scheduling cycle does */
    }
    if (!strstr(client_body(&client), "\"Error\":\"\""))
        g_error("filter refused: %.300s", client_body(&client));
    client_close(&client);
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t percentile(GArray *times, double percent)
{
    g_array_sort(times, compare_times);
    return g_array_index(times, int64_t, (guint)((times->len - 1) * percent / 100));
}

/* Beside whose readers filter is asked. */
enum side { SIDE_NOBODY, SIDE_OTHER, SIDE_OWN, SIDES };

static void compare_sides(struct program *own, struct program *other, double seconds, int rounds)
{
    static const char *const titles[SIDES] = {"nobody reads", "others read", "readers"};
    g_autoptr(GString) request = filter_request(&own->made_up.crowd);
    GArray *times[SIDES];
    int64_t p99[SIDES];

    for (int side = 0; side < SIDES; side++)
        times[side] = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (int round = 0; round < rounds; round++) {
        for (int side = 0; side < SIDES; side++) {
            struct readers readers;
            if (side != SIDE_NOBODY)
                readers_start(&readers, side == SIDE_OWN ? own : other);
            if (side != SIDE_NOBODY)
                g_usleep(200000);
            filter_for(own, request, seconds, times[side]);
            if (side != SIDE_NOBODY)
                readers_stop(&readers, NULL);
        }
    }
    printf("%-14s %8s %9s %9s %9s\n", "filter (us)", "calls", "p50", "p99", "longest");
    for (int side = 0; side < SIDES; side++) {
        p99[side] = percentile(times[side], 99);
        printf("%-14s %8u %9" G_GINT64_FORMAT " %9" G_GINT64_FORMAT " %9" G_GINT64_FORMAT "\n",
               titles[side], times[side]->len, percentile(times[side], 50), p99[side],
               percentile(times[side], 100));
        g_array_unref(times[side]);
    }
    printf("p99 beside readers / beside others of the same CPU: %.2f\n\n",
           (double)p99[SIDE_OWN] / (double)p99[SIDE_OTHER]);
}

/* --- holds ------------------------------------------------------------------------------------ */

static unsigned measure_holds(const struct crowd *crowd, const struct crowd_queue *queue,
                              double seconds)
{
    struct holds *holds = holds_new();
    struct program program = {0};
    struct readers readers;
    g_autoptr(GString) request = filter_request(crowd);
    GArray *times = g_array_new(FALSE, FALSE, sizeof(int64_t));

    program_start(&program, crowd, queue, holds);
    readers_start(&readers, &program);
    filter_for(&program, request, seconds, times);
    readers_stop(&readers, stdout);
    /* A watch that has ended is begun anew by a list. */
    for (int feed = 0; feed < FEED_N; feed++)
        crowd_list(crowd, program.extender.store, (enum feed)feed);
    program_stop(&program);
    const unsigned longer = holds_print(holds, LIMIT_US, stdout);
    holds_free(holds);
    g_array_unref(times);
    return longer;
}

/* CPU of one scrape, by nobody else. */
static void measure_scrape(struct program *program)
{
    struct client client;
    g_autoptr(GString) request = g_string_new(NULL);
    struct timespec from, to;
    const int n = 20;

    client_write(request, "GET", "/metrics", "", 0);
    client_connect(&client, server_port(program->ops));
    client_call(&client, request);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < n; i++)
        client_call(&client, request);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    printf("/metrics: %zu bytes, %.2f ms of CPU a scrape, the reader's included\n\n",
           client.answer->len,
           ((double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6) / n);
    client_close(&client);
}

/* What the heap holds for a card and for a pod. */
static void measure_memory(const struct crowd *crowd)
{
    struct store_options options = {.patience_ms = 10000, .hold_ms = 60000, .n_places = 8};
    struct store *store = store_new(&options);
    const size_t empty = mallinfo2().uordblks;

    crowd_list(crowd, store, FEED_NODES);
    const size_t nodes = mallinfo2().uordblks;
    crowd_list(crowd, store, FEED_PODS);
    const size_t pods = mallinfo2().uordblks;
    printf("heap: %.0f bytes a card, its part of the node included; %.0f bytes a pod\n",
           (double)(nodes - empty) / crowd->nodes / crowd->cards,
           (double)(pods - nodes) / MAX(crowd->pods, 1));
    store_free(store);
}

int main(void)
{
    const struct crowd crowd = {
        setting("GPULEDGER_BENCH_NODES", 10000),
        setting("GPULEDGER_BENCH_CARDS", 16),
        setting("GPULEDGER_BENCH_PODS", 200000),
    };
    const struct crowd_queue nobody = {0};
    const struct crowd_queue queue = {
        setting("GPULEDGER_BENCH_WAITING", 5000),
        setting("GPULEDGER_BENCH_GROUPS", 1000),
        setting("GPULEDGER_BENCH_UNSERVED", 2000),
        setting("GPULEDGER_BENCH_REJECTING", 2000),
    };
    const double seconds = setting("GPULEDGER_BENCH_SECONDS", 5);
    struct program own = {0}, other = {0};

    mallopt(M_ARENA_MAX, 2); /* as the program does */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%d nodes of %d cards, %d pods; beside holds %d pods and %d groups of %d wait, %d pods "
           "are not "
           "served, %d nodes are left out\n",
           crowd.nodes, crowd.cards, crowd.pods, queue.waiting, queue.groups, CROWD_GROUP,
           queue.unserved, queue.rejecting);
    measure_memory(&crowd);
    program_start(&own, &crowd, &nobody, NULL);
    measure_scrape(&own);
    const int rounds = setting("GPULEDGER_BENCH_ROUNDS", 3);
    if (rounds > 0) {
        program_start(&other, &crowd, &nobody, NULL);
        compare_sides(&own, &other, seconds, rounds);
        program_stop(&other);
    }
    program_stop(&own);
    const unsigned longer = measure_holds(&crowd, &queue, 2 * seconds);
    printf("holders above %d us at p99.9 that decide nothing: %u\n", LIMIT_US, longer);
    return longer > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs filter, prioritize and preempt against an echo of the same bytes by the same HTTP library, call
 * by call in turn, in one process: what gpuledger adds to carrying the bytes.
 *
 * The ratios are of the CPU time that the process takes for a call, client and server together, so that
 * they tell the same on a machine that does other things as well. What the recorder's thread does after
 * an answer counts for none of them.
 *
 * Set GPULEDGER_BENCH_CALLS for more or fewer calls per row, GPULEDGER_BENCH_VERB for one verb only,
 * GPULEDGER_BENCH_ROW for one row only, counted from 1.
 */
#include "verbs/extender.h"
#include "base/log.h"
#include "record/recorder.h"
#include "client.h"
#include "http/server.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CARDS 8
#define CARD_GIB 100
#define SIZE "04" /* what a pod asks for */

struct row {
    enum verb verb;
    int nodes, pods;
    bool whole; /* Node objects instead of names */
    bool fresh; /* each call is of a size that is not remembered */
    bool again; /* preempt: each call is of the same pod; else it is of another one */
};

static const struct row rows[] = {
    {VERB_FILTER, 100, 30000, false},
    {VERB_FILTER, 1000, 30000, false},
    {VERB_FILTER, 5000, 30000, false},
    {VERB_FILTER, 10000, 200000, false},
    {VERB_FILTER, 100, 30000, true},
    {VERB_FILTER, 1000, 30000, true},
    {VERB_FILTER, 5000, 30000, true},
    {VERB_PRIORITIZE, 1213, 30000, false},
    {VERB_PRIORITIZE, 5000, 30000, false},
    {VERB_PREEMPT, 100, 30000, false},
    {VERB_PREEMPT, 1000, 30000, false},
    {VERB_PRIORITIZE, 1000, 10000, false, .fresh = true},
    {VERB_PREEMPT, 100, 30000, false, .again = true},
};

/* --- the cluster ---------------------------------------------------------------------------- */

static char *node_name(int i)
{
    return g_strdup_printf("gpu-worker-%05d.example", i);
}

static void add_node(struct store *store, int i)
{
    g_autofree char *name = node_name(i);
    const struct string_pair capacity[] = {
        {"aliyun.com/gpu-mem", G_STRINGIFY(800)}, /* CARDS * CARD_GIB */
        {"aliyun.com/gpu-count", G_STRINGIFY(8)},
    };
    struct node_view view = {.name = name, .capacity = {capacity, 2}};
    store_apply_node(store, &view);
}

static void add_pod(struct store *store, int i, int nodes)
{
    g_autofree char *node = node_name(i % nodes);
    g_autofree char *name = g_strdup_printf("inference-%05d", i);
    g_autofree char *uid = g_strdup_printf("00000000-0000-4000-8000-%012d", i);
    g_autofree char *card = g_strdup_printf("%d", i / nodes % CARDS);
    const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "1"}};
    const struct container_view containers[] = {{.name = "main", .limits = {limits, 1}}};
    const struct string_pair annotations[] = {
        {"ALIYUN_COM_GPU_MEM_IDX", card},
        {"ALIYUN_COM_GPU_MEM_POD", "1"},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000000000000000"},
    };
    struct pod_view view = {
        .ns = "default",
        .name = name,
        .uid = uid,
        .node_name = node,
        .phase = "Running",
        .annotations = {annotations, G_N_ELEMENTS(annotations)},
        .containers = containers,
        .n_containers = 1,
    };
    store_apply_pod(store, &view);
}

static struct store *make_store(int nodes, int pods)
{
    struct store_options options = {.patience_ms = 10000};
    struct store *store = store_new(&options);

    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(store, feed);
    for (int i = 0; i < nodes; i++)
        add_node(store, i);
    for (int i = 0; i < pods; i++)
        add_pod(store, i, nodes);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(store, feed);
    return store;
}

/* --- the bodies ----------------------------------------------------------------------------- */

/* About 7 KB, as a GPU node of a real cluster is. */
static void append_node_object(GString *body, const char *name)
{
    g_string_append_printf(body,
                           "{\"metadata\":{\"name\":\"%s\",\"uid\":\"9c1f0c1e-3b0f-4a45-8d6e-"
                           "0a4a3d1b8d10\",\"labels\":{\"kubernetes.io/hostname\":\"%s\"",
                           name, name);
    for (int i = 0; i < 40; i++)
        g_string_append_printf(body, ",\"feature.node.example/cpu-flag-%02d\":\"true\"", i);
    g_string_append(body, "}},\"spec\":{},\"status\":{\"capacity\":{\"cpu\":\"96\",\"memory\":"
                          "\"792Gi\",\"pods\":\"110\",\"aliyun.com/gpu-mem\":\"800\","
                          "\"aliyun.com/gpu-count\":\"8\"},\"images\":[");
    for (int i = 0; i < 30; i++)
        g_string_append_printf(body,
                               "%s{\"names\":[\"registry.example/team/image-%02d@sha256:"
                               "3f1c0d5b9a7e4c2f8b6d0e1a2c3b4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e\"],"
                               "\"sizeBytes\":%d}",
                               i ? "," : "", i, 1234567 + i);
    g_string_append(body, "]}}");
}

/* A pod for a whole card, and on each node one victim that kube-scheduler has named: a pod that is
 * there, if there are pods. */
static GString *make_preempt_body(const struct row *row)
{
    GString *body = g_string_new(
        "{\"Pod\":{\"metadata\":{\"name\":\"web-0\",\"namespace\":\"default\",\"uid\":"
        "\"11111111-2222-4333-8444-555555555555\"},\"spec\":{\"priority\":1000,\"containers\":["
        "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"100\"},\"requests\":"
        "{\"aliyun.com/gpu-mem\":\"100\"}}}]}},\"NodeNameToMetaVictims\":{");

    for (int i = 0; i < row->nodes; i++) {
        g_autofree char *name = node_name(i);
        g_string_append_printf(body,
                               "%s\"%s\":{\"Pods\":[{\"UID\":\"00000000-0000-4000-8000-%012d\"}],"
                               "\"NumPDBViolations\":0}",
                               i ? "," : "", name, i);
    }
    g_string_append(body, "}}");
    return body;
}

static GString *make_body(const struct row *row)
{
    if (row->verb == VERB_PREEMPT)
        return make_preempt_body(row);
    GString *body = g_string_new(
        "{\"Pod\":{\"metadata\":{\"name\":\"web-0\",\"namespace\":\"default\",\"uid\":"
        "\"11111111-2222-4333-8444-555555555555\"},\"spec\":{\"containers\":[{\"name\":\"main\","
        "\"image\":\"registry.example/web:1\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
        "\"" SIZE "\"},\"requests\":{\"aliyun.com/gpu-mem\":\"" SIZE
        "\"}}}]},\"status\":{\"phase\":\"Pending\"}},");

    g_string_append(body, row->whole ? "\"Nodes\":{\"metadata\":{},\"items\":[" : "\"NodeNames\":[");
    for (int i = 0; i < row->nodes; i++) {
        g_autofree char *name = node_name(i);
        if (i > 0)
            g_string_append_c(body, ',');
        if (row->whole)
            append_node_object(body, name);
        else
            g_string_append_printf(body, "\"%s\"", name);
    }
    g_string_append(body, row->whole ? "]},\"NodeNames\":null}" : "],\"Nodes\":null}");
    return body;
}

/* --- measuring ------------------------------------------------------------------------------ */

static void handle_filter(void *data, struct http_request *request, struct http_response *response)
{
    response->content_type = "application/json";
    extender_filter(data, request->body, request->length, response->body);
}

static void handle_prioritize(void *data, struct http_request *request,
                              struct http_response *response)
{
    response->content_type = "application/json";
    extender_prioritize(data, PRIORITIZE_ALL, request->body, request->length, response->body, NULL);
}

static void handle_preempt(void *data, struct http_request *request, struct http_response *response)
{
    response->content_type = "application/json";
    extender_preempt(data, request->body, request->length, response->body, NULL);
}

static const struct {
    const char *name;
    server_handler handle;
    const char *good; /* what every answer holds */
} verbs[VERB_N] = {
    [VERB_FILTER] = {"filter", handle_filter, "\"Error\":\"\""},
    [VERB_PRIORITIZE] = {"prioritize", handle_prioritize, "\"Score\":10"},
    [VERB_PREEMPT] = {"preempt", handle_preempt, "\"Pods\":[{\"UID\""},
};

static void handle_echo(void *data, struct http_request *request, struct http_response *response)
{
    response->content_type = "application/json";
    g_string_append_len(response->body, request->body, (gssize)request->length);
}

static struct server *start(server_handler handler, void *data)
{
    g_autoptr(GError) failure = NULL;
    struct server_options options = {
        .name = "bench",
        .host = "127.0.0.1",
        .mode = SERVER_THREADS,
        .connections_max = 16,
        .idle_timeout_s = 120,
        .body_max = SERVER_BODY_MAX,
        .bodies_max = SERVER_BODIES_MAX,
        .handler = handler,
        .data = data,
    };
    struct server *server = server_start(&options, &failure);
    if (!server)
        g_error("%s", failure->message);
    return server;
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t percentile(GArray *times, int percent)
{
    g_array_sort(times, compare_times);
    return g_array_index(times, int64_t, (times->len - 1) * (guint)percent / 100);
}

/* What takes turns at the same bytes. */
enum side { SIDE_ECHO, SIDE_EMPTY, SIDE_FULL, SIDE_RECORDED, SIDES };

struct contestant {
    struct extender extender;
    struct server *server;
    struct client client;
    GArray *times_us, *cpu_ns; /* of each call */
    char *record; /* NULL: nothing is recorded */
    struct recorder *recorder;
};

static void start_recorder(struct contestant *contestant)
{
    g_autoptr(GError) failure = NULL;
    const int file = g_file_open_tmp("gpuledger-bench-XXXXXX", &contestant->record, &failure);

    if (file < 0)
        g_error("%s", failure->message);
    close(file);
    contestant->recorder = recorder_new(
        &(struct recorder_options){contestant->record, 1 << 30, "{}"}, &failure);
    if (!contestant->recorder)
        g_error("%s", failure->message);
    recorder_observe(contestant->recorder, contestant->extender.store);
}

static void stop_recorder(struct contestant *contestant)
{
    g_autofree char *old = g_strconcat(contestant->record, ".1", NULL);

    recorder_free(contestant->recorder);
    unlink(contestant->record);
    unlink(old);
    g_free(contestant->record);
}

static void contestant_init(struct contestant *contestant, enum side side, const struct row *row)
{
    if (side != SIDE_ECHO)
        contestant->extender = (struct extender){
            .store = make_store(row->nodes, side >= SIDE_FULL ? row->pods : 0),
            .bind_timeout_ms = 1000,
        };
    if (side == SIDE_RECORDED)
        start_recorder(contestant);
    contestant->server =
        start(side == SIDE_ECHO ? handle_echo : verbs[row->verb].handle, &contestant->extender);
    contestant->times_us = g_array_new(FALSE, FALSE, sizeof(int64_t));
    contestant->cpu_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
    client_connect(&contestant->client, server_port(contestant->server));
}

static void contestant_clear(struct contestant *contestant)
{
    client_close(&contestant->client);
    server_free(contestant->server);
    if (contestant->recorder)
        stop_recorder(contestant);
    store_free(contestant->extender.store);
    g_array_unref(contestant->times_us);
    g_array_unref(contestant->cpu_ns);
}

/* Until the recorder's thread has written what it has: else the next one to call pays for it. */
static void let_write(void)
{
    int64_t before_ns;

    do {
        before_ns = cpu_ns();
        g_usleep(500);
    } while (cpu_ns() - before_ns > 100000);
}

static void call_once(struct contestant *contestant, const GString *request, bool counts)
{
    const int64_t before_ns = cpu_ns();
    const int64_t took_us = client_call(&contestant->client, request);
    const int64_t used_ns = cpu_ns() - before_ns;

    if (contestant->recorder)
        let_write();
    if (!counts)
        return;
    g_array_append_val(contestant->times_us, took_us);
    g_array_append_val(contestant->cpu_ns, used_ns);
}

/* More sizes in turn than are remembered. */
static void set_size(GString *request, int i)
{
    static const char field[] = "\"aliyun.com/gpu-mem\":\"";

    for (char *at = request->str; (at = strstr(at, field)); at += strlen(field)) {
        at[strlen(field)] = (char)('1' + i % 80 / 10);
        at[strlen(field) + 1] = (char)('0' + i % 10);
    }
}

/* Another pod of the same kind. */
static void set_uid(GString *request, int i)
{
    static const char field[] = "\"uid\":\"";
    char *at = strstr(request->str, field) + strlen(field);

    for (int k = 0; k < 8; k++, i /= 10)
        at[k] = (char)('0' + i % 10);
}

static void print_row(const struct row *row, size_t length, const struct contestant *contestants)
{
    double cpu_us[SIDES];

    for (enum side side = 0; side < SIDES; side++)
        cpu_us[side] = (double)percentile(contestants[side].cpu_ns, 50) / 1000;
    printf("%-10s %6d %7d  %-5s %7zu %8.0f %8.0f %8.0f %8.2f %8.2f %8.2f %8.2f %9" G_GINT64_FORMAT
           " %9" G_GINT64_FORMAT "\n",
           verbs[row->verb].name, row->nodes, row->pods,
           row->whole   ? "nodes"
           : row->fresh ? "fresh"
           : row->again ? "again"
                        : "names",
           length / 1024, cpu_us[SIDE_ECHO], cpu_us[SIDE_EMPTY], cpu_us[SIDE_FULL],
           cpu_us[SIDE_EMPTY] / cpu_us[SIDE_ECHO], cpu_us[SIDE_FULL] / cpu_us[SIDE_ECHO],
           cpu_us[SIDE_FULL] / cpu_us[SIDE_EMPTY], cpu_us[SIDE_RECORDED] / cpu_us[SIDE_FULL],
           percentile(contestants[SIDE_ECHO].times_us, 99),
           percentile(contestants[SIDE_FULL].times_us, 99));
    fflush(stdout);
}

static void measure(const struct row *row, int calls)
{
    GString *body = make_body(row);
    GString *request = client_prepare("/filter", body->str, body->len);
    struct contestant contestants[SIDES] = {0};

    for (enum side side = 0; side < SIDES; side++)
        contestant_init(&contestants[side], side, row);
    for (int i = -2; i < calls; i++) {
        if (row->fresh)
            set_size(request, i + 2);
        if (row->verb == VERB_PREEMPT && !row->again)
            set_uid(request, i + 2);
        call_once(&contestants[SIDE_ECHO], request, false); /* as warm as for the others */
        for (enum side side = 0; side < SIDES; side++)
            call_once(&contestants[side], request, i >= 0); /* else it is warm-up */
    }
    for (enum side side = 0; side < SIDES; side++) {
        const char *answer = client_body(&contestants[side].client);
        if (side != SIDE_ECHO && (!strstr(answer, verbs[row->verb].good) || !strstr(answer, "00000")))
            g_error("the verb refused: %.300s", answer);
    }
    print_row(row, body->len, contestants);
    for (enum side side = 0; side < SIDES; side++)
        contestant_clear(&contestants[side]);
    g_string_free(body, TRUE);
    g_string_free(request, TRUE);
}

int main(void)
{
    const char *wanted = g_getenv("GPULEDGER_BENCH_CALLS");
    const char *verb = g_getenv("GPULEDGER_BENCH_VERB");
    const char *row = g_getenv("GPULEDGER_BENCH_ROW");
    int calls = wanted ? (int)g_ascii_strtoll(wanted, NULL, 10) : 400;

    mallopt(M_ARENA_MAX, 2); /* as the program does */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 2 << 20);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    printf("                                 body    CPU of a call (us), p50          ratios of it"
           "                       p99 (us) of\n"
           "verb        nodes    pods  sent      KiB     echo  no pods     pods  no/echo pod/echo"
           "   pod/no  rec/pod      echo      pods\n");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if ((!verb || g_str_equal(verb, verbs[rows[i].verb].name)) &&
            (!row || g_ascii_strtoull(row, NULL, 10) == i + 1))
            measure(&rows[i], rows[i].whole ? MAX(calls * 10 / rows[i].nodes, 5) : calls);
    }
    return 0;
}

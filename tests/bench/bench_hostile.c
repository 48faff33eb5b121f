/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter for pods that are made to be dear, beside an echo of the same bytes by the same HTTP library; and
 * for an honest pod, alone and while another connection asks about the dear one without a pause. 1,000 nodes
 * of 16 cards, which others fill to a part.
 *
 * The first ratio is of CPU time, of calls in turn. The other one is of what the honest caller waits, the
 * 99th of a hundred calls, and tells little on a machine that does other things as well.
 *
 * Set GPULEDGER_BENCH_CALLS for more or fewer calls per row.
 */
#include "verbs/extender.h"
#include "base/log.h"
#include "client.h"
#include "http/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define NODES 1000
#define CARDS 16
#define CARD_MIB 10000
#define LIST_WORDS 64

struct row {
    const char *name;
    int containers, mib, step; /* each asks for so many MiB more than the one before */
    int other_mib;             /* every other one asks for this; 0: none does */
    bool lists;
};

static const struct row rows[] = {
    {"honest", 1, 100, 0, 0, false},
    {"lists", 1, 100, 0, 0, true},
    {"unequal", CARDS + 1, 6001, 1, 0, false},
    {"puzzle", 24, 6501, 1, 3400, false},
    {"many", 64, 2200, 1, 0, true},
};

/* --- the cluster ---------------------------------------------------------------------------- */

static char *node_name(int i)
{
    return g_strdup_printf("gpu-worker-%05d.example", i);
}

static void add_node(struct store *store, int i)
{
    g_autofree char *name = node_name(i);
    g_autoptr(GString) cards = g_string_new(NULL);
    struct string_pair resources[] = {{"nvidia.com/gpu", "160"}};
    struct string_pair annotations[] = {{"hami.io/node-nvidia-register", NULL}};
    struct node_view view = {.name = name,
                             .capacity = {resources, 1},
                             .allocatable = {resources, 1},
                             .annotations = {annotations, 1}};

    for (int card = 0; card < CARDS; card++)
        g_string_append_printf(cards, "GPU-%d-%d,10,%d,100,NVIDIA-Tesla T4,0,true,%d,hami-core:", i,
                               card, CARD_MIB, card);
    annotations[0].value = cards->str;
    store_apply_node(store, &view);
}

static struct store *make_store(void)
{
    struct store *store = store_new(&(struct store_options){.patience_ms = 10000});

    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(store, feed);
    for (int i = 0; i < NODES; i++)
        add_node(store, i);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(store, feed);
    return store;
}

static void append_list(GString *body, const char *key)
{
    g_string_append_printf(body, "\"%s\":\"T4", key);
    for (int i = 1; i < LIST_WORDS; i++)
        g_string_append_printf(body, ",word-%03d", i);
    g_string_append(body, "\"");
}

static GString *make_body(const struct row *row)
{
    GString *body =
        g_string_new("{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\","
                     "\"uid\":\"11111111-2222-4333-8444-555555555555\",\"annotations\":{");

    if (row->lists) {
        append_list(body, "nvidia.com/use-gputype");
        g_string_append_c(body, ',');
        append_list(body, "nvidia.com/nouse-gpuuuid");
    }
    g_string_append(body, "}},\"spec\":{\"containers\":[");
    for (int i = 0; i < row->containers; i++)
        g_string_append_printf(
            body,
            "%s{\"name\":\"c%d\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\","
            "\"nvidia.com/gpumem\":\"%d\"}}}",
            i ? "," : "", i, row->other_mib && i % 2 ? row->other_mib : row->mib + i * row->step);
    g_string_append(body, "]}},\"NodeNames\":[");
    for (int i = 0; i < NODES; i++) {
        g_autofree char *name = node_name(i);
        g_string_append_printf(body, "%s\"%s\"", i ? "," : "", name);
    }
    g_string_append(body, "],\"Nodes\":null}");
    return body;
}

/* --- measuring ------------------------------------------------------------------------------ */

static void handle_filter(void *data, struct http_request *request, struct http_response *response)
{
    response->content_type = "application/json";
    extender_filter(data, request->body, request->length, response->body);
}

static void handle_echo(void *data, struct http_request *request, struct http_response *response)
{
    response->content_type = "application/json";
    g_string_append_len(response->body, request->body, (gssize)request->length);
}

static struct server *start(server_handler handler, void *data)
{
    g_autoptr(GError) failure = NULL;
    const struct server_options options = {
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

static int64_t cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static gint compare_times(gconstpointer a, gconstpointer b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static int64_t percentile(GArray *times, guint percent)
{
    g_array_sort(times, compare_times);
    return g_array_index(times, int64_t, (times->len - 1) * percent / 100);
}

struct bench {
    struct server *filter, *echo;
    int calls;
};

/* Calls of the same bytes, one after the other: CPU time, or what the caller waits. */
static int64_t call(struct server *server, const GString *request, int calls, bool waits,
                    guint percent)
{
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(int64_t));
    struct client client;

    client_connect(&client, server_port(server));
    for (int i = -2; i < calls; i++) {
        const int64_t before_us = cpu_us();
        const int64_t waited_us = client_call(&client, request);
        const int64_t took_us = waits ? waited_us : cpu_us() - before_us;
        if (i >= 0)
            g_array_append_val(times, took_us);
    }
    client_close(&client);
    return percentile(times, percent);
}

struct attack {
    struct server *server;
    const GString *request;
    atomic_bool ends;
};

static void *run_attack(void *data)
{
    struct attack *attack = data;
    struct client client;

    client_connect(&client, server_port(attack->server));
    while (!atomic_load(&attack->ends))
        client_call(&client, attack->request);
    client_close(&client);
    return NULL;
}

static void measure(const struct bench *bench, const struct row *row, const GString *honest)
{
    GString *body = make_body(row);
    GString *request = client_prepare("/filter", body->str, body->len);
    struct attack attack = {bench->filter, request, false};
    pthread_t thread;

    const int64_t echo_us = call(bench->echo, request, bench->calls, false, 50);
    const int64_t filter_us = call(bench->filter, request, bench->calls, false, 50);
    const int64_t alone_us = call(bench->filter, honest, bench->calls, true, 99);
    if (pthread_create(&thread, NULL, run_attack, &attack) != 0)
        g_error("no thread");
    const int64_t beside_us = call(bench->filter, honest, bench->calls, true, 99);
    atomic_store(&attack.ends, true);
    pthread_join(thread, NULL);
    printf("%-10s %10d %8" G_GINT64_FORMAT " %8" G_GINT64_FORMAT " %8.2f %10" G_GINT64_FORMAT
           " %10" G_GINT64_FORMAT " %8.2f\n",
           row->name, row->containers, echo_us, filter_us, (double)filter_us / (double)echo_us,
           alone_us, beside_us, (double)beside_us / (double)alone_us);
    fflush(stdout);
    g_string_free(body, TRUE);
    g_string_free(request, TRUE);
}

int main(void)
{
    const char *wanted = g_getenv("GPULEDGER_BENCH_CALLS");
    struct extender extender = {.store = make_store(), .bind_timeout_ms = 1000};
    const struct bench bench = {start(handle_filter, &extender), start(handle_echo, NULL),
                                wanted ? (int)g_ascii_strtoll(wanted, NULL, 10) : 100};
    GString *body = make_body(&rows[0]);
    GString *honest = client_prepare("/filter", body->str, body->len);

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    printf("                        CPU of a call (us), p50    honest call waits (us), p99\n"
           "pod        containers     echo   filter    ratio      alone     beside    ratio\n");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        measure(&bench, &rows[i], honest);
    server_free(bench.filter);
    server_free(bench.echo);
    store_free(extender.store);
    g_string_free(body, TRUE);
    g_string_free(honest, TRUE);
    return 0;
}

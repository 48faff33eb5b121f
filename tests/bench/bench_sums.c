/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call pays for what could be worked out before it: quotas beside 200,000 pods, a node whose cards have
 * changed under a policy that goes by the expected pods, and nodes that join, leave and register anew all the time.
 * Every figure is a ratio of two things done in one run, of the time that calls take.
 *
 * GPULEDGER_BENCH_CALLS: calls per figure.
 */
#include "base/log.h"
#include "../unit/objects.h"
#include "verbs/extender.h"
#include "verbs/outlook.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define NODES 2000
#define PODS 200000
#define NAMES 1000 /* of one call */
#define STORM_US 2000
#define ROUNDS 9
#define WORDS_MAX 16 /* of a Binding */

static struct extender extender;
static char *body;

static void add_node(int i, int units)
{
    g_autofree char *name = g_strdup_printf("n%05d", i);
    g_autofree char *memory = g_strdup_printf("%d", 8 * units);
    const struct string_pair capacity[] = {{MEM, memory}, {COUNT, "8"}};
    const struct string_pair labels[] = {{"model", "M40"}};

    store_apply_node(
        extender.store,
        &(struct node_view){.name = name, .labels = {labels, 1}, .capacity = {capacity, 2}});
}

static void hold(int i, const char *ns, const char *units)
{
    g_autofree char *uid = g_strdup_printf("p%07d", i);
    g_autofree char *node = g_strdup_printf("n%05d", i % NODES);
    g_autofree char *card = g_strdup_printf("%d", i / NODES % 8);
    const struct string_pair limits[] = {{MEM, units}};
    const struct container_view containers[] = {{.name = "c", .limits = {limits, 1}}};
    const struct string_pair annotations[] = {{"ALIYUN_COM_GPU_MEM_IDX", card},
                                              {"ALIYUN_COM_GPU_MEM_POD", units},
                                              {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                              {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}};
    const struct pod_view pod = {.ns = ns,
                                 .name = uid,
                                 .uid = uid,
                                 .node_name = node,
                                 .phase = "Running",
                                 .annotations = {annotations, 4},
                                 .containers = containers,
                                 .n_containers = 1};

    store_apply_pod(extender.store, &pod);
}

static void begin(const struct store_options *options, int pods)
{
    GString *text =
        g_string_new("{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},"
                     "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
                     "\":\"2\"}}}]}},\"NodeNames\":[");

    extender = (struct extender){.store = store_new(options)};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, (enum feed)feed);
    for (int i = 0; i < NODES; i++)
        add_node(i, 100 + i % 32);
    for (int i = 0; i < pods; i++) {
        g_autofree char *ns = g_strdup_printf("team-%d", i % 50);
        hold(i, i % 1000 == 0 ? "ml" : ns, "1");
    }
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, (enum feed)feed);
    for (int i = 0; i < NAMES; i++)
        g_string_append_printf(text, "%s\"n%05d\"", i ? "," : "", i);
    g_string_append(text, "]}");
    body = g_string_free(text, FALSE);
}

static void end(void)
{
    g_clear_pointer(&extender.store, store_free);
    g_clear_pointer(&body, g_free);
}

/* Microseconds. */
static double filter(void)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const gint64 began = g_get_monotonic_time();

    extender_filter(&extender, body, strlen(body), reply);
    return (double)(g_get_monotonic_time() - began);
}

static gint compare(gconstpointer a, gconstpointer b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof *times, compare);
    return times[n / 2];
}

/* --- quotas ----------------------------------------------------------------------------------- */

static const char *const quotas[] = {"none", "by model", "HAMi's keys", "elastic"};

static void apply_quota(size_t kind)
{
    const struct string_pair text[] = {{"gpu_quota", "{\"ml\":{\"quota\":{\"M40\":9999}}}"}};
    const struct string_pair hard[] = {{"limits.nvidia.com/gpumem", "1Ti"}};
    const struct string_pair max[] = {{"gpuledger.io/gpus", "9999"}};

    if (kind == 1)
        store_put_configmap(
            extender.store,
            &(struct configmap_view){.ns = "kube-system", .name = "gpuquota", .data = {text, 1}});
    if (kind == 2)
        store_put_quota(extender.store,
                        &(struct resource_quota_view){.ns = "ml", .name = "q", .hard = {hard, 1}});
    if (kind == 3)
        store_put_quota(extender.store,
                        &(struct resource_quota_view){
                            .ns = "ml", .name = "q", .elastic = true, .max = {max, 1}});
}

static void bench_quotas(int calls)
{
    g_autofree double *times = g_new(double, calls);
    double without = 0;

    for (size_t kind = 0; kind < G_N_ELEMENTS(quotas); kind++) {
        begin(&(struct store_options){.patience_ms = 60000,
                                      .model_label = "model",
                                      .resource_quotas = true,
                                      .elastic_quotas = true,
                                      .silent = true},
              PODS);
        apply_quota(kind);
        filter();
        for (int i = 0; i < calls; i++) {
            hold(PODS + i, "team-1", "1");
            times[i] = filter();
        }
        const double took = median(times, calls);
        without = kind == 0 ? took : without;
        g_print("filter beside %d pods, quota %-12s %6.2f x without\n", PODS, quotas[kind],
                took / without);
        end();
    }
}

/* --- cards ------------------------------------------------------------------------------------ */

static void bench_cards(int calls)
{
    g_autofree double *first = g_new(double, calls), *next = g_new(double, calls);

    begin(
        &(struct store_options){.patience_ms = 60000, .policy = policy_find("oc"), .silent = true},
        2000);
    filter();
    store_refresh_outlook(extender.store);
    for (int i = 0; i < calls; i++) {
        add_node(i % NAMES, 200 + i % 32);
        first[i] = filter();
        next[i] = filter();
    }
    g_print("first filter after a node's cards change      %6.2f x the next\n",
            median(first, calls) / median(next, calls));
    end();
}

/* --- a storm ---------------------------------------------------------------------------------- */

static atomic_bool stops, blows;

/* Three changes of nodes every two milliseconds: some join and leave, others register other cards. */
static void *storm(void *data)
{
    for (int i = 0; !atomic_load(&stops); i++) {
        g_autofree char *name = g_strdup_printf("n%05d", NODES + i % 50);
        g_usleep(STORM_US);
        if (!atomic_load(&blows))
            continue;
        if (i % 3 == 2)
            store_delete_node(extender.store, name);
        else
            add_node(NODES + i % 50, 100 + i % 40);
        add_node(i % NODES, 100 + (i + i / NODES) % 32);
    }
    return NULL;
}

/* --- binds ------------------------------------------------------------------------------------ */

static void apply_bound(const struct binding *binding)
{
    struct string_pair annotations[WORDS_MAX];
    size_t n = 0;
    const struct string_pair limits[] = {{MEM, "1"}};
    const struct container_view containers[] = {{.name = "c", .limits = {limits, 1}}};

    for (size_t i = 0; i < binding->annotations->n && n + 1 < G_N_ELEMENTS(annotations); i++) {
        const char *key = binding->annotations->items[i].key;
        if (!g_str_equal(key, "ALIYUN_COM_GPU_MEM_ASSIGNED"))
            annotations[n++] = (struct string_pair){key, binding->annotations->items[i].value};
    }
    annotations[n++] = (struct string_pair){"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"};
    store_apply_pod(extender.store, &(struct pod_view){.ns = binding->ns,
                                                       .name = binding->name,
                                                       .uid = binding->uid,
                                                       .node_name = binding->node,
                                                       .phase = "Running",
                                                       .annotations = {annotations, n},
                                                       .containers = containers,
                                                       .n_containers = 1});
}

/* The watch shows at once that the pod is there and served. */
static enum outcome bind_pod(struct cluster *cluster, const struct binding *binding,
                             int64_t deadline_ms, GError **error)
{
    apply_bound(binding);
    return OUTCOME_OK;
}

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM "\":\"1\"}}}]}}",
        name, ns, name);
    const cJSON *object = json_parse(arena, text, strlen(text), error);

    return object && pod_view_decode(arena, object, ret_pod, error) ? OUTCOME_OK : OUTCOME_REFUSED;
}

static const struct cluster_ops ops = {.name = "bench", .bind = bind_pod, .get_pod = get_pod};
static struct cluster cluster = {&ops};

static void bind_next(int i)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *text =
        g_strdup_printf("{\"PodName\":\"p%07d\",\"PodNamespace\":\"team-1\",\"PodUID\":\"p%07d\","
                        "\"Node\":\"n%05d\"}",
                        i, i, i % NAMES);

    extender_bind(&extender, text, strlen(text), reply);
    if (!strstr(reply->str, "\"Error\":\"\""))
        g_error("%s", reply->str);
}

/* Calls a second, each followed by a bind. */
static double pace(int calls, int from)
{
    const gint64 began = g_get_monotonic_time();

    for (int i = 0; i < calls; i++) {
        filter();
        bind_next(from + i);
    }
    return calls * 1e6 / (double)(g_get_monotonic_time() - began);
}

static void bench_storm(int calls)
{
    double ratios[ROUNDS];
    pthread_t thread;
    int from = 20000;

    begin(
        &(struct store_options){.patience_ms = 60000, .policy = policy_find("oc"), .silent = true},
        from);
    extender.cluster = &cluster;
    extender.bind_timeout_ms = 1000;
    struct outlook *outlook = outlook_start(extender.store, NULL);
    pthread_create(&thread, NULL, storm, NULL);
    for (int round = 0; round < ROUNDS; round++, from += 2 * calls) {
        atomic_store(&blows, false);
        const double alone = pace(calls, from);
        atomic_store(&blows, true);
        ratios[round] = pace(calls, from + calls) / alone;
    }
    atomic_store(&stops, true);
    pthread_join(thread, NULL);
    outlook_free(outlook);
    g_print("filters and binds beside a storm of nodes      %6.2f x without\n",
            median(ratios, ROUNDS));
    end();
}

int main(void)
{
    const char *wish = g_getenv("GPULEDGER_BENCH_CALLS");
    const int calls = wish ? MAX(atoi(wish), 1) : 300;

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    bench_quotas(calls);
    bench_cards(calls);
    bench_storm(calls);
    return 0;
}

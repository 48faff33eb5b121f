/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever happens: filter and prioritize, which remember what they have found out about nodes, answer
 * what somebody would who knows the same and remembers nothing.
 */
#include "verbs/extender.h"
#include "../unit/objects.h"
#include "base/log.h"
#include "chance.h"

#include <stdlib.h>
#include <string.h>

#define NODES 8
#define EVENTS_OF_A_WORLD 1500

struct world {
    struct store *store;
    unsigned n_pods;
    uint64_t now_s;
};

/* --- what there is ---------------------------------------------------------------------------- */

#define LIST(...)                                                                                  \
    {                                                                                              \
        (const struct string_pair[]){__VA_ARGS__},                                                 \
            sizeof((const struct string_pair[]){__VA_ARGS__}) / sizeof(struct string_pair)         \
    }

/* What pods ask for: few kinds, so that many are alike. */
static const struct wish {
    struct string_pairs limits, annotations;
} wishes[] = {
    {LIST({"aliyun.com/gpu-mem", "2"}, {"cpu", "1"}, {"memory", "4Gi"}), {0}},
    {LIST({"aliyun.com/gpu-mem", "5"}, {"cpu", "4"}), {0}},
    {LIST({"aliyun.com/gpu-mem", "5"}, {"cpu", "4"}), LIST({"gpuledger.io/policy", "oc"})},
    {LIST({"aliyun.com/gpu-mem", "5"}, {"cpu", "4"}), LIST({"gpuledger.io/policy", "spread"})},
    {LIST({"aliyun.com/gpu-mem", "9"}), LIST({"gpuledger.io/gpu-memory-min", "10Gi"})},
    {LIST({"nvidia.com/gpu", "1"}, {"cpu", "2"}, {"memory", "16Gi"}), {0}},
    {LIST({"nvidia.com/gpu", "2"}), LIST({"gpuledger.io/gpu-models", "T4"})},
    {LIST({"elasticgpu.io/gpu-core", "30"}, {"cpu", "2"}), {0}},
    {LIST({"cpu", "3"}), {0}},
    {LIST({"cpu", "3"}, {"memory", "20Gi"}), {0}},
};

/* What nodes have. */
static const struct string_pairs hardware[] = {
    LIST({"aliyun.com/gpu-mem", "20"}, {"aliyun.com/gpu-count", "2"}, {"cpu", "16"}),
    LIST({"aliyun.com/gpu-mem", "64"}, {"aliyun.com/gpu-count", "4"}, {"cpu", "32"},
         {"memory", "64Gi"}),
    LIST({"aliyun.com/gpu-mem", "9"}, {"aliyun.com/gpu-count", "1"}),
    LIST({"nvidia.com/gpu", "4"}, {"cpu", "32"}, {"memory", "48Gi"}),
    LIST({"elasticgpu.io/gpu-core", "200"}, {"elasticgpu.io/gpu-memory", "8192"}),
    LIST({"cpu", "64"}),
};

static char *node_name(unsigned i)
{
    return g_strdup_printf("n%u", i);
}

static void set_node(void *data)
{
    struct world *world = data;
    g_autofree char *name = node_name(chance_below(NODES));
    const struct string_pair labels[] = {
        {"gpuledger.io/policy", chance_percent(50) ? "spread" : "oc"},
        {"nvidia.com/gpu.product", chance_percent(50) ? "Tesla-T4" : "A10"}};
    const struct string_pairs *has = &hardware[chance_below(G_N_ELEMENTS(hardware))];
    const struct node_view view = {
        .name = name,
        .labels = {labels + chance_below(2), chance_below(2)},
        .capacity = *has,
        .allocatable = *has,
    };

    store_apply_node(world->store, &view);
}

static void remove_node(void *data)
{
    struct world *world = data;
    g_autofree char *name = node_name(chance_below(NODES));

    store_delete_node(world->store, name);
}

static void end_all_pods(struct world *world)
{
    for (unsigned i = 0; i < world->n_pods; i++) {
        g_autofree char *uid = g_strdup_printf("p%u", i);
        store_delete_pod(world->store, uid);
    }
    world->n_pods = 0;
}

/* Empty nodes go and others come: those get the places of these. */
static void replace_nodes(void *data)
{
    end_all_pods(data);
    for (unsigned i = 0; i < NODES; i++) {
        if (chance_percent(40))
            remove_node(data);
        else
            set_node(data);
    }
}

static void set_health(void *data)
{
    struct world *world = data;
    g_autofree char *name = g_strdup_printf("unhealthy-gpu-n%u", chance_below(NODES));
    const struct string_pair gpus[] = {{"gpus", chance_percent(50) ? "0" : "1,2"}};
    const struct configmap_view view = {
        .ns = "kube-system", .name = name, .data = {gpus, G_N_ELEMENTS(gpus)}};

    if (chance_percent(40))
        store_drop_configmap(world->store, &view);
    else
        store_put_configmap(world->store, &view);
}

static void set_policy(void *data)
{
    struct world *world = data;

    store_set_policy(world->store, &policies[chance_below(6)], 10000);
}

/* A pod that is new or known, with a node or without, matched by its node side or not. */
static void set_pod(void *data)
{
    struct world *world = data;
    const bool is_new = world->n_pods == 0 || chance_percent(60);
    g_autofree char *name =
        g_strdup_printf("p%u", is_new ? world->n_pods++ : chance_below(world->n_pods));
    g_autofree char *node = node_name(chance_below(NODES));
    g_autofree char *index = g_strdup_printf("%u", chance_below(3));
    g_autofree char *time =
        g_strdup_printf("%" G_GUINT64_FORMAT "000000000", world->now_s - chance_below(20));
    const struct wish *wish = &wishes[chance_below(G_N_ELEMENTS(wishes))];
    const struct container_view container = {.name = "main", .limits = wish->limits};
    const struct string_pair annotations[] = {
        {"ALIYUN_COM_GPU_MEM_IDX", index},
        {"ALIYUN_COM_GPU_MEM_POD", string_pairs_get(&wish->limits, "aliyun.com/gpu-mem")},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", chance_percent(60) ? "true" : "false"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", time},
    };
    const bool bound = chance_percent(70), shared = annotations[1].value != NULL;
    const struct pod_view view = {
        .ns = "ml",
        .name = name,
        .uid = name,
        .node_name = bound ? node : NULL,
        .nominated_node = !bound && chance_percent(20) ? node : NULL,
        .phase = bound && chance_percent(80) ? "Running" : "Pending",
        .priority = chance_below(3),
        .annotations = bound && shared
                           ? (struct string_pairs){annotations, G_N_ELEMENTS(annotations)}
                           : wish->annotations,
        .containers = &container,
        .n_containers = 1,
    };

    store_apply_pod(world->store, &view);
}

static void end_pod(void *data)
{
    struct world *world = data;
    g_autofree char *uid = g_strdup_printf("p%u", chance_below(world->n_pods + 1));

    store_delete_pod(world->store, uid);
}

/* --- what is asked ---------------------------------------------------------------------------- */

static void append_pairs(GString *body, const struct string_pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        g_string_append_printf(body, "%s\"%s\":\"%s\"", i ? "," : "", pairs->items[i].key,
                               pairs->items[i].value);
}

static char *draw_call(void)
{
    const struct wish *wish = &wishes[chance_below(G_N_ELEMENTS(wishes))];
    GString *body = g_string_new("{\"Pod\":{\"metadata\":{\"name\":\"new\",\"namespace\":\"ml\","
                                 "\"uid\":\"new\",\"annotations\":{");
    uint32_t order[NODES];

    append_pairs(body, &wish->annotations);
    g_string_append(body, "}},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{"
                          "\"requests\":{");
    append_pairs(body, &wish->limits);
    g_string_append(body, "},\"limits\":{");
    append_pairs(body, &wish->limits);
    g_string_append_printf(body, "}}}],\"priority\":%u},\"status\":{}},\"NodeNames\":[",
                           chance_below(3));
    chance_order(order, NODES);
    for (uint32_t i = 0; i < NODES; i++)
        g_string_append_printf(body, "%s\"n%u\"", i ? "," : "", order[i]);
    g_string_append(body, "]}");
    return g_string_free(body, FALSE);
}

/* What is asked, of whom and when. */
struct question {
    enum verb verb;
    enum prioritize_shape shape;
    struct moment moment;
    const char *body;
};

static char *answer(struct store *store, const struct question *question)
{
    struct extender extender = {.store = store, .shape = question->shape};
    const char *body = question->body;
    GString *reply = g_string_new(NULL);

    store_set_moment(store, &question->moment);
    if (question->verb == VERB_FILTER)
        extender_filter(&extender, body, strlen(body), reply);
    else
        extender_prioritize(&extender, PRIORITIZE_ALL, body, strlen(body), reply, NULL);
    store_set_moment(store, NULL); /* it is the caller's */
    return g_string_free(reply, FALSE);
}

static void ask(void *data)
{
    struct world *world = data;
    g_autoptr(store) copy = store_copy(world->store);
    g_autofree char *body = draw_call();
    const struct question question = {
        .verb = chance_percent(50) ? VERB_FILTER : VERB_PRIORITIZE,
        .shape = chance_percent(50) ? PRIORITIZE_SCALED : PRIORITIZE_WINNER,
        .moment = {.now_ns = (int64_t)world->now_s * 1000000000,
                   .now_ms = (int64_t)world->now_s * 1000},
        .body = body,
    };
    g_autofree char *found = answer(world->store, &question);
    g_autofree char *fresh = answer(copy, &question);

    HOLDS(*found && strcmp(found, fresh) == 0, "%s: %s instead of %s", body, found, fresh);
}

static void pass_time(void *data)
{
    ((struct world *)data)->now_s += chance_below(8);
}

static const struct chance_action actions[] = {
    {"ask", 40, ask},
    {"set pod", 30, set_pod},
    {"end pod", 15, end_pod},
    {"set node", 3, set_node},
    {"remove node", 1, remove_node},
    {"replace nodes", 1, replace_nodes},
    {"set health", 2, set_health},
    {"set policy", 1, set_policy},
    {"pass time", 6, pass_time},
    {0},
};

static void begin(struct world *world)
{
    store_free(world->store);
    *world = (struct world){
        .store = store_new(&(struct store_options){.patience_ms = 10000, .silent = true}),
        .now_s = 1700000000,
    };
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(world->store, feed);
        store_list_end(world->store, feed);
    }
    for (int i = 0; i < 2 * NODES; i++)
        set_node(world);
}

int main(void)
{
    struct world world = {0};

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    chance_init("filter and prioritize answer as if they remembered nothing", 16000);
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % EVENTS_OF_A_WORLD == 0)
            begin(&world);
        chance_act(actions, &world);
    }
    store_free(world.store);
    return EXIT_SUCCESS;
}

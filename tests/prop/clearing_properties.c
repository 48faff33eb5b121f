/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of two calls of preempt for one pod the second names nobody whom the first has not named or who is
 * being deleted anyway, while the node that kube-scheduler has chosen will take the pod, whatever the watch has
 * shown between them. Where no node of the first answer will, it is answered like a first one.
 *
 * What fits is added up from the pods that this test has made up.
 */
#include "chance.h"
#include "../unit/literals.h"

#include "verbs/extender.h"

#include <stdlib.h>
#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define NODES 4
#define CARDS 2
#define CARD_UNITS 10
#define PODS_MAX 64
#define PRIORITY 15 /* of the pod that is to come */

enum state { RUNNING, ENDING, GONE };

struct pod {
    char uid[8];
    int node, card, units, priority;
    enum state state;
    bool first, second; /* named by that call */
};

static struct scene {
    struct extender extender;
    struct pod pods[PODS_MAX];
    int n_pods, units; /* what the pod asks for */
    bool answered[NODES];
} scene;

static const char *const names[NODES] = {"n0", "n1", "n2", "n3"};

/* --- what fits ------------------------------------------------------------------------------ */

static int left_on(int node, int card, bool cleared)
{
    int left = CARD_UNITS;

    for (int i = 0; i < scene.n_pods; i++) {
        const struct pod *pod = &scene.pods[i];
        if (pod->node == node && pod->card == card && pod->state != GONE &&
            !(cleared && (pod->first || (pod->state == ENDING && pod->priority < PRIORITY))))
            left -= pod->units;
    }
    return left;
}

/* Once those have ended that the first call has named there, and less important ones that are being deleted. */
static bool will_fit(int node)
{
    return left_on(node, 0, true) >= scene.units || left_on(node, 1, true) >= scene.units;
}

/* --- the cluster ---------------------------------------------------------------------------- */

static void tell(const struct pod *pod)
{
    g_autofree char *units = g_strdup_printf("%d", pod->units);

    store_apply_pod(
        scene.extender.store,
        &(struct pod_view){.ns = "ml",
                           .name = pod->uid,
                           .uid = pod->uid,
                           .created = "2026-01-01T00:00:00Z",
                           .priority = pod->priority,
                           .node_name = names[pod->node],
                           .terminating = pod->state == ENDING,
                           .phase = "Running",
                           .started = true,
                           .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", pod->card ? "1" : "0"},
                                                {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"}),
                           CONTAINERS({.name = "c", .limits = PAIRS({MEM, units})})});
}

static void add_pod(int node, int priority)
{
    struct pod *pod = &scene.pods[scene.n_pods];
    const int card = (int)chance_below(CARDS), left = left_on(node, card, false);

    if (left < 1 || scene.n_pods == PODS_MAX)
        return;
    *pod = (struct pod){.node = node, .card = card, .priority = priority};
    pod->units = (int)chance_between(1, left);
    g_snprintf(pod->uid, sizeof pod->uid, "u%d", scene.n_pods++);
    tell(pod);
}

static void end_pod(struct pod *pod)
{
    pod->state = chance_percent(50) ? ENDING : GONE;
    if (pod->state == ENDING)
        tell(pod);
    else
        store_delete_pod(scene.extender.store, pod->uid);
}

static void begin(void)
{
    static const struct moment moment = {.now_ns = INT64_C(1900000000000000000), .now_ms = 1000};
    struct store *store = store_new(&(struct store_options){.patience_ms = 60000});

    scene = (struct scene){.extender = {.store = store}, .units = (int)chance_between(3, 10)};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(store, feed);
    for (int node = 0; node < NODES; node++)
        store_apply_node(store, &(struct node_view){.name = names[node],
                                                    .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(store, feed);
    store_set_moment(store, &moment);
    for (int i = 0; i < 24; i++)
        add_pod((int)chance_below(NODES), (int)chance_between(1, 20));
}

/* --- calls ---------------------------------------------------------------------------------- */

static bool first_named(const struct pod *pod)
{
    return pod->first;
}

static bool lesser(const struct pod *pod)
{
    return pod->priority < PRIORITY;
}

/* Some of those pods of the node, and at times none. */
static void offer(GString *nodes, int node, bool (*wanted)(const struct pod *pod))
{
    const char *comma = "";

    g_string_append_printf(nodes, "%s\"%s\":{\"Pods\":[", nodes->len ? "," : "", names[node]);
    for (int i = 0; i < scene.n_pods; i++) {
        const struct pod *pod = &scene.pods[i];
        if (pod->node != node || pod->state == GONE || !wanted(pod) || chance_percent(50))
            continue;
        g_string_append_printf(nodes, "%s{\"UID\":\"%s\"}", comma, pod->uid);
        comma = ",";
    }
    g_string_append(nodes, "]}");
}

static cJSON *call(const char *uid, int nominated, const char *nodes)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"%s\"},"
        "\"status\":{\"nominatedNodeName\":\"%s\"},\"spec\":{\"priority\":%d,\"containers\":[{"
        "\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM "\":\"%d\"}}}]}},"
        "\"NodeNameToMetaVictims\":{%s}}",
        uid, nominated < 0 ? "" : names[nominated], PRIORITY, scene.units, nodes);

    HOLDS(extender_preempt(&scene.extender, body, strlen(body), reply, NULL), "%s", body);
    cJSON *json = cJSON_Parse(reply->str);
    HOLDS(json, "%s", reply->str);
    return json;
}

static struct pod *pod_of(const cJSON *victim)
{
    return &scene.pods[atoi(cJSON_GetObjectItem(victim, "UID")->valuestring + 1)];
}

static int n_answered(const cJSON *reply)
{
    return cJSON_GetArraySize(cJSON_GetObjectItem(reply, "NodeNameToMetaVictims"));
}

static void note_first(const cJSON *reply)
{
    const cJSON *node, *victim;

    cJSON_ArrayForEach (node, cJSON_GetObjectItem(reply, "NodeNameToMetaVictims")) {
        scene.answered[atoi(node->string + 1)] = true;
        cJSON_ArrayForEach (victim, cJSON_GetObjectItem(node, "Pods"))
            pod_of(victim)->first = true;
    }
}

static void check_nobody_new(const cJSON *reply)
{
    const cJSON *node, *victim;

    cJSON_ArrayForEach (node, cJSON_GetObjectItem(reply, "NodeNameToMetaVictims")) {
        cJSON_ArrayForEach (victim, cJSON_GetObjectItem(node, "Pods"))
            HOLDS(pod_of(victim)->first || pod_of(victim)->state == ENDING, "%s on %s",
                  pod_of(victim)->uid, node->string);
    }
}

/* --- both ----------------------------------------------------------------------------------- */

static int choose_node(void)
{
    int node = (int)chance_below(NODES);

    while (!scene.answered[node])
        node = (node + 1) % NODES;
    return node;
}

static void happen(int chosen)
{
    for (int i = 0; i < scene.n_pods; i++) {
        struct pod *pod = &scene.pods[i];
        if (pod->state == RUNNING && chance_percent(pod->node == chosen && pod->first ? 50 : 5))
            end_pod(pod);
    }
    if (chance_percent(40))
        add_pod(chosen, (int)chance_between(1, 20));
    if (chance_percent(30))
        add_pod((int)chance_below(NODES), (int)chance_between(1, 20));
}

/* Of the nodes that kube-scheduler may have chosen. */
static bool any_will_fit(int nominated)
{
    bool any = false;

    for (int node = 0; node < NODES; node++)
        any |= scene.answered[node] && (nominated < 0 || node == nominated) && will_fit(node);
    return any;
}

static unsigned n_stood, n_new;

static void ask_again(void)
{
    const int chosen = choose_node();
    const int nominated = chance_percent(60) ? chosen : -1;
    const bool offered = chance_percent(40);
    g_autoptr(GString) nodes = g_string_new(NULL);

    if (chance_percent(60))
        happen(chosen);
    for (int node = 0; node < NODES; node++) {
        if (node == chosen ? offered : chance_percent(70))
            offer(nodes, node, node == chosen ? first_named : lesser);
    }
    cJSON *second = call("p", nominated, nodes->str);
    cJSON *fresh = call("q", nominated, nodes->str);
    if (will_fit(chosen)) {
        n_stood++;
        check_nobody_new(second);
        HOLDS(offered || n_answered(second) == 0, "a node that kube-scheduler takes for cleared");
    } else if (!any_will_fit(nominated)) {
        n_new++;
        HOLDS(cJSON_Compare(second, fresh, true), "like a first call");
    }
    cJSON_Delete(second);
    cJSON_Delete(fresh);
}

int main(void)
{
    chance_init("clearing", 3000);
    while (chance_next_event()) {
        g_autoptr(GString) nodes = g_string_new(NULL);
        begin();
        for (int node = 0; node < NODES; node++) {
            if (chance_percent(80))
                offer(nodes, node, lesser);
        }
        cJSON *first = call("p", -1, nodes->str);
        note_first(first);
        if (n_answered(first) > 0)
            ask_again();
        cJSON_Delete(first);
        store_free(scene.extender.store);
    }
    HOLDS(n_stood > 100 && n_new > 20, "%u answers stood, %u did not", n_stood, n_new);
    return 0;
}

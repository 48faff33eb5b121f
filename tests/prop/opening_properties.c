/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that preempt ends, or that its preview foresees, end for something: once they have, filter passes the pod on
 * the node, or leaves the room to an older one, whatever rule has something to say there. A nominated pod is on the
 * node with one card: on several, which it takes depends on who has ended.
 */
#include "chance.h"

#include "../unit/objecting_cluster.h"
#include "../unit/suite.h"

#include "base/log.h"

#define NODES 2
#define CARDS 2 /* of n0; n1 has one */
#define NOMINATED_NODE 1
#define CARD_UNITS 10
#define PODS_MAX 12
#define NOMINATED_UNITS 6
#define NONE (-1)
#define BOTH "'n0','n1'"
#define GOING "'deletionTimestamp':'2026-01-05T12:00:00Z',"

enum rule {
    NODE_REJECTS,
    CARD_REJECTS,
    FEW_UNSEALED,
    MANY_UNSEALED,
    MANY_UNSEALED_OF_OTHERS,
    SWITCHES,
    KEEPS_ROOM,
    CARD_CORDONED,
    RULES
};

struct drawn_pod {
    char name[4];
    const char *ns;
    int node, card, units;
    int64_t priority;
    bool going; /* it is being deleted, for the nominated pod */
};

struct scene {
    bool rules[NODES][RULES];
    int n_pods;
    struct drawn_pod pods[PODS_MAX];
    int units; /* what ml/hi asks for */
    bool short_lived, offered[PODS_MAX];
    int models, max;              /* quotas of ml: GPUs, tenths of a GPU; NONE: none */
    bool nominated, elder, group; /* there is such a pod */
    int64_t its_priority;         /* the nominated one's */
};

static const char *const names[NODES] = {"n0", "n1"};

/* --- drawing --------------------------------------------------------------------------------- */

static void draw_pod(struct scene *scene, int *left)
{
    struct drawn_pod *pod = &scene->pods[scene->n_pods];

    *pod = (struct drawn_pod){.ns = chance_percent(50) ? "ml" : "web",
                              .node = (int)chance_below(NODES),
                              .priority = chance_percent(80) ? chance_below(3) : 2 * PRIORITY};
    pod->card = pod->node == 0 ? (int)chance_below(CARDS) : 0;
    int *there = &left[pod->node * CARDS + pod->card];
    if (*there == 0)
        return;
    pod->units = (int)chance_between(1, *there);
    *there -= pod->units;
    scene->offered[scene->n_pods] = chance_percent(50);
    g_snprintf(pod->name, sizeof pod->name, "p%d", scene->n_pods++);
}

/* kube-scheduler nominates a pod once it has deleted those that are in its way: all that are less important. */
static void draw_nominated(struct scene *scene)
{
    int left = CARD_UNITS;

    scene->its_priority = chance_percent(50) ? PRIORITY / 2 : 2 * PRIORITY;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < scene->n_pods; i++) {
            struct drawn_pod *pod = &scene->pods[i];
            if (pod->node != NOMINATED_NODE)
                continue;
            pod->going = pass > 0 && pod->priority < scene->its_priority;
            left -= pass == 0 && pod->priority >= scene->its_priority ? pod->units : 0;
        }
        if (left < NOMINATED_UNITS)
            return;
    }
    scene->nominated = true;
}

static void draw(struct scene *scene)
{
    int left[NODES * CARDS];

    *scene = (struct scene){
        .units = (int)chance_between(3, CARD_UNITS),
        .short_lived = chance_percent(30),
        .models = chance_percent(20) ? (int)chance_below(4) : NONE,
        .max = chance_percent(20) ? (int)chance_between(5, 40) : NONE,
        .elder = chance_percent(20),
        .group = chance_percent(20),
    };
    for (int i = 0; i < NODES * CARDS; i++)
        left[i] = CARD_UNITS;
    for (int i = 0; i < PODS_MAX; i++)
        draw_pod(scene, left);
    if (chance_percent(40))
        draw_nominated(scene);
    for (int node = 0; node < NODES; node++) {
        for (int rule = 0; rule < RULES; rule++)
            scene->rules[node][rule] = chance_percent(8);
    }
}

/* --- the cluster ------------------------------------------------------------------------------- */

static void write_node(const struct scene *scene, int node)
{
    const bool *rules = scene->rules[node];
    g_autofree char *marks =
        g_strdup_printf("'x':'y'%s%s%s", rules[SWITCHES] ? "," SWITCH_AHEAD : "",
                        rules[KEEPS_ROOM] ? "," ROOM_ON_CARD_0 : "",
                        rules[CARD_CORDONED] ? ",'gpuledger.io/cordoned-cards':'0'" : "");

    add_node((struct said_node){names[node], .labels = "'model':'T4'", .annotations = marks,
                                .amounts = node == 0 ? DUO : MONO});
    if (rules[NODE_REJECTS])
        reject_three(names[node], NODE_FAILS);
    else if (rules[CARD_REJECTS])
        reject_three(names[node], CARD_FAILS);
    if (rules[MANY_UNSEALED])
        lose_seals(names[node], "ml", UNSEALED);
    else if (rules[MANY_UNSEALED_OF_OTHERS])
        lose_seals(names[node], "web", UNSEALED);
    else if (rules[FEW_UNSEALED])
        lose_seals(names[node], "ml", 1);
}

static void write_quotas(const struct scene *scene)
{
    if (scene->models != NONE)
        feed(FEED_CONFIGMAPS, false, CONFIG("\\\"T4\\\":%d"), scene->models);
    if (scene->max != NONE)
        feed(FEED_ELASTIC_QUOTAS, false,
             "{'metadata':{'name':'q','namespace':'ml'},'spec':{'max':"
             "{'gpuledger.io/gpus':'%d00m'}}}",
             scene->max);
}

static void write_hi(const struct scene *scene)
{
    g_autofree char *units = g_strdup_printf("%d", scene->units);

    add_pod((struct said_pod){"hi", .mem = units, .priority = PRIORITY,
                              .annotations =
                                  scene->short_lived ? "'gpuledger.io/max-duration':'1m'" : NULL,
                              .spec = scene->short_lived ? "'activeDeadlineSeconds':60," : NULL});
}

static void write_scene(const struct scene *scene)
{
    begin_objecting();
    for (int node = 0; node < NODES; node++)
        write_node(scene, node);
    for (int i = 0; i < scene->n_pods; i++) {
        const struct drawn_pod *pod = &scene->pods[i];
        g_autofree char *units = g_strdup_printf("%d", pod->units);
        add_pod((struct said_pod){pod->name, pod->ns, .node = names[pod->node],
                                  .card = pod->card ? "1" : "0", .mem = units,
                                  .priority = pod->priority, .meta = pod->going ? GOING : NULL});
    }
    if (scene->group)
        await_group(BOTH);
    if (scene->nominated)
        add_pod((struct said_pod){"other", "web", .mem = "6", .priority = scene->its_priority,
                                  .status = "'nominatedNodeName':'n1',"});
    if (scene->elder) {
        add_pod((struct said_pod){"elder", "web", .mem = "6", .priority = PRIORITY});
        g_string_free(filter_reply("web/elder", BOTH), TRUE);
    }
    write_quotas(scene);
    write_hi(scene);
}

/* --- ends -------------------------------------------------------------------------------------- */

/* Those have ended that were to, and those that were being deleted. */
static void check(const struct scene *scene, const char *by, const char *node)
{
    g_autofree char *nodes = g_strdup_printf("'%s'", node);
    g_autofree char *passes = g_strdup_printf("\"NodeNames\":[\"%s\"]", node);

    for (int i = 0; i < scene->n_pods; i++) {
        const struct drawn_pod *pod = &scene->pods[i];
        g_autofree char *uid = g_strdup_printf("%s/%s", pod->ns, pod->name);
        if (pod->going)
            store_delete_pod(told, uid);
    }
    g_autoptr(GString) reply = filter_reply("ml/hi", nodes);
    HOLDS(strstr(reply->str, passes) || strstr(reply->str, reason_info(REASON_EARLIER_POD)->text),
          "%s ends pods on %s, and filter says %s", by, node, reply->str);
}

/* kube-scheduler may name any of the less important pods of any node that has refused the pod. */
static char *offer(const struct scene *scene)
{
    g_autoptr(GString) body = g_string_new("{\"Pod\":");

    g_string_append_printf(body, "%s,\"NodeNameToMetaVictims\":{",
                           (const char *)g_hash_table_lookup(pods, "ml/hi"));
    for (int node = 0; node < NODES; node++) {
        const char *comma = "";
        g_string_append_printf(body, "%s\"%s\":{\"Pods\":[", node ? "," : "", names[node]);
        for (int i = 0; i < scene->n_pods; i++) {
            const struct drawn_pod *pod = &scene->pods[i];
            if (pod->node != node || pod->priority >= PRIORITY || !scene->offered[i])
                continue;
            g_string_append_printf(body, "%s{\"UID\":\"%s/%s\"}", comma, pod->ns, pod->name);
            comma = ",";
        }
        g_string_append(body, "]}");
    }
    g_string_append(body, "}}");
    return g_string_free(g_steal_pointer(&body), FALSE);
}

/* On one of the nodes that it has left. */
static void run_preempt(const struct scene *scene)
{
    g_autofree char *body = offer(scene);
    g_autoptr(GString) reply = g_string_new(NULL);
    const cJSON *victim;

    HOLDS(extender_preempt(&extender, body, strlen(body), reply, NULL), "%s", body);
    cJSON *json = cJSON_Parse(reply->str);
    const cJSON *nodes = cJSON_GetObjectItem(json, "NodeNameToMetaVictims");
    const int n = cJSON_GetArraySize(nodes);
    const cJSON *node = n > 0 ? cJSON_GetArrayItem(nodes, (int)chance_below((uint32_t)n)) : NULL;
    cJSON_ArrayForEach (victim, cJSON_GetObjectItem(node, "Pods"))
        store_delete_pod(told, cJSON_GetObjectItem(victim, "UID")->valuestring);
    if (node)
        check(scene, "preempt", node->string);
    cJSON_Delete(json);
}

static void run_preview(const struct scene *scene)
{
    g_autoptr(explanation) explanation = explain("ml/hi");
    const struct preview *preview = explanation->preview;

    if (!preview || !preview->node)
        return;
    for (guint i = 0; i < preview->pods->len; i++) {
        const struct evicted_pod *pod = &g_array_index(preview->pods, struct evicted_pod, i);
        g_autofree char *uid = g_strdup_printf("%s/%s", pod->ns, pod->name);
        store_delete_pod(told, uid);
    }
    check(scene, "the preview", preview->node);
}

/* What the cluster of unit tests asserts, a suite of them reports. */
START_TEST(all)
{
    while (chance_next_event()) {
        struct scene scene;
        draw(&scene);
        write_scene(&scene);
        run_preempt(&scene);
        write_scene(&scene);
        run_preview(&scene);
    }
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opening");
    TCase *tests = tcase_create("opening");

    chance_init("no pod ends where a rule refuses the pod afterwards", 1000);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, all);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of filter costs about the first pod of a large group, in CPU time of its thread, most of it
 * under the store's lock; beside a call about a pod alone, of as many nodes.
 *
 * GPULEDGER_BENCH_NODES, _CARDS, _PODS, _MEMBERS say how large.
 */
#include "base/log.h"
#include "../unit/objects.h"
#include "crowd.h"
#include "json/json.h"
#include "verbs/extender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AT_ONCE 5 /* calls about one more pod each */

struct row {
    const char *title;
    int members, kinds;
    int values;         /* of a selector in each pod; 0: it has none */
    int pods;           /* that run */
    bool quota;         /* the namespace has one */
    bool over;          /* one pod more than fits */
    bool late;          /* only the last nodes have room, for all */
    int cards;          /* of a node; 0: as set */
    const char *policy; /* NULL: the default */
};

static int setting(const char *name, int otherwise)
{
    const char *text = g_getenv(name);
    return text ? atoi(text) : otherwise;
}

static double thread_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Of the group if it has one: nodes of which it selects nearly all, by name. */
static char *pod_text(const struct row *row, const struct crowd *crowd, const char *group, int i)
{
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_append_printf(text,
                           "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s-%d\",\"uid\":\"%s-%"
                           "d\",\"annotations\":{",
                           group, i, group, i);
    if (*group == 'g')
        g_string_append_printf(text,
                               "\"gang.scheduling.koordinator.sh/name\":\"%s\","
                               "\"gang.scheduling.koordinator.sh/min-available\":\"%d\"",
                               group, row->members);
    g_string_append_printf(
        text,
        "}},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
        "\"aliyun.com/gpu-mem\":\"%d\"}}}]",
        (row->late ? 100 : 60) - i % row->kinds);
    if (row->values > 0) {
        g_string_append(text,
                        ",\"affinity\":{\"nodeAffinity\":{"
                        "\"requiredDuringSchedulingIgnoredDuringExecution\":{"
                        "\"nodeSelectorTerms\":[{\"matchExpressions\":[{"
                        "\"key\":\"kubernetes.io/hostname\",\"operator\":\"NotIn\",\"values\":[");
        for (int value = 0; value < row->values; value++)
            g_string_append_printf(text, "%s\"none-%d-%d\"", value ? "," : "", i % row->kinds,
                                   value);
        g_string_append(text, "]}]}]}}}");
    }
    g_string_append(text, "},\"status\":{\"phase\":\"Pending\"}}");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void put_pod(struct store *store, const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view view;
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);

    if (!object || !pod_view_decode(arena, object, &view, NULL))
        g_error("%s", text);
    store_apply_pod(store, &view);
}

static double filter(struct extender *extender, const struct crowd *crowd, const char *pod,
                     bool *ret_placed)
{
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);

    g_string_append_printf(body, "{\"Pod\":%s,\"NodeNames\":[", pod);
    for (int i = 0; i < crowd->nodes; i++) {
        g_autofree char *name = crowd_node_name(i);
        g_string_append_printf(body, "%s\"%s\"", i ? "," : "", name);
    }
    g_string_append(body, "]}");
    const double start = thread_ms();
    extender_filter(extender, body->str, body->len, reply);
    const double ms = thread_ms() - start;
    *ret_placed = !strstr(reply->str, "\"NodeNames\":[]") && strstr(reply->str, "\"NodeNames\":[");
    return ms;
}

static void measure(const struct row *row)
{
    const int cards = row->cards ? row->cards : setting("GPULEDGER_BENCH_CARDS", 8);
    const struct crowd crowd = {.nodes = row->over ? (row->members - 1) / cards
                                                   : setting("GPULEDGER_BENCH_NODES", 1000),
                                .cards = cards,
                                .pods = row->pods};
    const struct store_options options = {.policy =
                                              row->policy ? policy_find(row->policy) : &policies[0],
                                          .patience_ms = 10000,
                                          .hold_ms = 60000,
                                          .n_places = 8,
                                          .gangs = true};
    struct extender extender = {.store = store_new(&options), .bind_timeout_ms = 1000};
    bool placed, alone_placed;

    crowd_fill(&crowd, extender.store);
    if (row->late) {
        const struct crowd full = {.nodes = crowd.nodes - 1 - row->members / cards, .cards = cards};
        for (int i = 0; i < 2 * full.nodes * cards; i++)
            crowd_put_pod(&full, extender.store, i, 0);
    }
    if (row->quota)
        store_put_quota(
            extender.store,
            &(struct resource_quota_view){
                .ns = "ml",
                .name = "q",
                .hard = {(const struct string_pair[]){{"limits.nvidia.com/gpumem", "1000000000"}},
                         1}});
    for (int i = 0; i < row->members; i++) {
        g_autofree char *text = pod_text(row, &crowd, "g", i);
        put_pod(extender.store, text);
    }
    g_autofree char *alone = pod_text(row, &crowd, "alone", 0),
                    *first = pod_text(row, &crowd, "g", 0), *second = pod_text(row, &crowd, "g", 1);
    const double alone_ms = filter(&extender, &crowd, alone, &alone_placed);
    const double first_ms = filter(&extender, &crowd, first, &placed);
    const double second_ms = filter(&extender, &crowd, second, &placed);
    printf("%-44s %8.2f ms  then %8.2f ms  alone %6.2f ms  %s\n", row->title, first_ms, second_ms,
           alone_ms, placed ? "placed" : "refused");
    fflush(stdout);
    store_free(extender.store);
}

int main(void)
{
    const int members = setting("GPULEDGER_BENCH_MEMBERS", 1000),
              pods = setting("GPULEDGER_BENCH_PODS", 30000);
    const struct row rows[] = {
        {.title = "equal pods", .members = members, .kinds = 1},
        {.title = "equal pods, one too many", .members = members, .kinds = 1, .over = true},
        {.title = "a card on each node", .members = members, .kinds = 1, .cards = 1},
        {.title = "a card on each node, one too many",
         .members = members,
         .kinds = 1,
         .cards = 1,
         .over = true},
        {.title = "the same with oc", .members = members, .kinds = 1, .cards = 1, .policy = "oc"},
        {.title = "eight kinds", .members = members, .kinds = 8},
        {.title = "eight kinds, room on the last nodes alone",
         .members = members,
         .kinds = 8,
         .late = true},
        {.title = "eight kinds with oc", .members = members, .kinds = 8, .policy = "oc"},
        {.title = "nine kinds", .members = members, .kinds = 9},
        {.title = "one kind, 500 names not to go to",
         .members = members,
         .kinds = 1,
         .values = 500},
        {.title = "eight kinds, 500 names not to go to",
         .members = members,
         .kinds = 8,
         .values = 500},
        {.title = "equal pods, beside pods that run", .members = members, .kinds = 1, .pods = pods},
        {.title = "the same with a quota",
         .members = members,
         .kinds = 1,
         .pods = pods,
         .quota = true},
    };

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        measure(&rows[i]);
    return EXIT_SUCCESS;
}

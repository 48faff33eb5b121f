/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A store with one gpushare node of two cards, and pods on it, for the tests of src/kueue. */
#include "kueue_words.h"
#include "literals.h"
#include "store/store.h"

static inline struct store *two_cards(const char *units_of_both)
{
    const struct store_options options = {.policy = policies, .silent = true};
    struct store *store = store_new(&options);
    const struct node_view node = {
        .name = "n1",
        .allocatable = PAIRS({"aliyun.com/gpu-mem", units_of_both}, {"aliyun.com/gpu-count", "2"}),
        .capacity = PAIRS({"aliyun.com/gpu-mem", units_of_both}, {"aliyun.com/gpu-count", "2"}),
    };

    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(store, feed);
    store_apply_node(store, &node);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(store, feed);
    return store;
}

/* A pod of `app` that is on a card. */
static inline void occupy(struct store *store, const char *app, const char *uid, const char *units,
                          const char *card)
{
    const struct container_view container = {.name = "c",
                                             .limits = PAIRS({"aliyun.com/gpu-mem", units})};
    const struct pod_view pod = {
        .ns = "ml",
        .name = uid,
        .uid = uid,
        .node_name = "n1",
        .phase = "Running",
        .labels = PAIRS({"app", app}, {"job-name", "j"}),
        .annotations =
            PAIRS({"ALIYUN_COM_GPU_MEM_IDX", card}, {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                  {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1795600801000000000"}),
        .containers = &container,
        .n_containers = 1,
    };

    store_apply_pod(store, &pod);
}

/* The pods of a Workload of one pod set, which is called as its app. */
static inline struct pod_sets *pods_of(const char *name, const char *app, int count, int units)
{
    static const struct dialect_options dialects;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GArray) flavors = g_array_new(FALSE, FALSE, sizeof(struct named_flavor));
    g_autofree char *text = g_strdup_printf(
        "{'metadata':{'namespace':'ml','name':'%s','uid':'uid-%s'},'spec':{'podSets':["
        "{'name':'%s','count':%d,'template':{'metadata':{'labels':{'app':'%s'}},'spec':{'"
        "containers':["
        "{'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'%d'}}}]}}}]}}",
        name, name, app, count, app, units);
    struct workload_view view;

    ck_assert(workload_view_decode(arena, parsed(arena, text), &view, NULL));
    struct pod_sets *sets = pod_sets_new(&view, flavors, &dialects, NULL);
    ck_assert(sets);
    return sets;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#define CARD_GIB 100

char *crowd_node_name(int i)
{
    return g_strdup_printf("gpu-worker-%05d.example", i);
}

static void put_node(const struct crowd *crowd, struct store *store, int i)
{
    g_autofree char *name = crowd_node_name(i);
    g_autofree char *memory = g_strdup_printf("%d", crowd->cards * CARD_GIB);
    g_autofree char *count = g_strdup_printf("%d", crowd->cards);
    const struct string_pair capacity[] = {
        {"aliyun.com/gpu-mem", memory},
        {"aliyun.com/gpu-count", count},
    };
    const struct node_view view = {.name = name, .capacity = {capacity, 2}};

    store_apply_node(store, &view);
}

void crowd_put_pod(const struct crowd *crowd, struct store *store, int i, int generation)
{
    g_autofree char *node = crowd_node_name(i % crowd->nodes);
    g_autofree char *name = g_strdup_printf("inference-%06d", i);
    g_autofree char *ns = g_strdup_printf("team-%02d", i % 40);
    g_autofree char *uid = g_strdup_printf("00000000-0000-4000-8000-%012d", i);
    g_autofree char *card = g_strdup_printf("%d", (i / crowd->nodes + generation) % crowd->cards);
    const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "4"}};
    const struct container_view containers[] = {{.name = "main", .limits = {limits, 1}}};
    const struct string_pair annotations[] = {
        {"ALIYUN_COM_GPU_MEM_IDX", card},
        {"ALIYUN_COM_GPU_MEM_POD", "4"},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000000000000000"},
    };
    const struct pod_view view = {
        .ns = ns,
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

void crowd_list(const struct crowd *crowd, struct store *store, enum feed feed)
{
    store_list_begin(store, feed);
    for (int i = 0; feed == FEED_NODES && i < crowd->nodes; i++)
        put_node(crowd, store, i);
    for (int i = 0; feed == FEED_PODS && i < crowd->pods; i++)
        crowd_put_pod(crowd, store, i, 0);
    store_list_end(store, feed);
}

void crowd_fill(const struct crowd *crowd, struct store *store)
{
    for (int feed = 0; feed < FEED_N; feed++)
        crowd_list(crowd, store, (enum feed)feed);
}

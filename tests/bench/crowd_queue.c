/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd_queue.h"
#include "wire/rejection.h"

#include <string.h>

#define GROUP "gang.scheduling.koordinator.sh/"

static char *uid_of(const char *kind, int i, int generation)
{
    return g_strdup_printf("%s-0000-4000-8000-%06d%06d", kind, generation, i);
}

/* Of `group`, or alone. Alone it asks for nearly a card, which nobody has free. */
static void put_waiting(struct store *store, const char *uid, int i, const char *group)
{
    g_autofree char *ns = g_strdup_printf("team-%02d", i % 40);
    g_autofree char *name = g_strdup_printf("training-%06d", i);
    const struct string_pair pairs[] = {{GROUP "name", group}, {GROUP "min-available", "8"}};
    const struct string_pair limits[] = {{"aliyun.com/gpu-mem", group ? "1" : "98"}};
    const struct container_view containers[] = {{.name = "main", .limits = {limits, 1}}};
    const struct pod_view view = {
        .ns = ns,
        .name = name,
        .uid = uid,
        .created = "2026-01-01T00:00:00Z",
        .phase = "Pending",
        .annotations = {pairs, group ? G_N_ELEMENTS(pairs) : 0},
        .containers = containers,
        .n_containers = 1,
    };

    store_apply_pod(store, &view);
}

static void put_unserved(const struct crowd *crowd, struct store *store, const char *uid, int i)
{
    g_autofree char *node = crowd_node_name(crowd->nodes - 1 - i % crowd->nodes);
    const struct string_pair limits[] = {{"aliyun.com/gpu-mem", "1"}};
    const struct container_view containers[] = {{.name = "main", .limits = {limits, 1}}};
    const struct string_pair annotations[] = {
        {"ALIYUN_COM_GPU_MEM_IDX", "0"},
        {"ALIYUN_COM_GPU_MEM_POD", "1"},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000000000000000"},
    };
    const struct pod_view view = {
        .ns = "team-00",
        .name = uid,
        .uid = uid,
        .node_name = node,
        .phase = "Pending",
        .annotations = {annotations, G_N_ELEMENTS(annotations)},
        .containers = containers,
        .n_containers = 1,
    };

    store_apply_pod(store, &view);
}

static void ask(struct extender *extender, const char *uid)
{
    struct store *store = extender->store;

    store_lock(store);
    arrivals_ask(store_arrivals(store), uid, g_get_monotonic_time() / 1000);
    store_unlock(store);
}

static void put_alone(struct store *store, int i, int generation)
{
    g_autofree char *uid = uid_of("a1a1a1a1", i, generation);

    put_waiting(store, uid, i, NULL);
}

void crowd_queue_change(const struct crowd_queue *queue, struct store *store, int i, int generation)
{
    g_autofree char *uid = uid_of("a1a1a1a1", i % queue->waiting, generation);

    store_delete_pod(store, uid);
    put_alone(store, i % queue->waiting, generation + 1);
}

/* Filter is asked about one of its pods, and so all get places. */
static void place_group(struct extender *extender, int i, const char *uid, const char *group)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autoptr(GString) reply = g_string_new(NULL);

    g_string_printf(
        body,
        "{\"Pod\":{\"metadata\":{\"name\":\"training\",\"namespace\":\"team-%02d\",\"uid\":"
        "\"%s\",\"annotations\":{\"" GROUP "name\":\"%s\",\"" GROUP
        "min-available\":\"8\"}},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{"
        "\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}]}},\"NodeNames\":[",
        i % 40, uid, group);
    for (int j = 0; j < 16; j++) {
        g_autofree char *name = crowd_node_name((i * 16 + j) % 4096);
        g_string_append_printf(body, "%s\"%s\"", j ? "," : "", name);
    }
    g_string_append(body, "]}");
    extender_filter(extender, body->str, body->len, reply);
}

static void put_group(struct extender *extender, int i)
{
    g_autofree char *group = g_strdup_printf("group-%05d", i);
    g_autofree char *first = uid_of("b2b2b2b2", i * CROWD_GROUP, 0);

    for (int j = 0; j < CROWD_GROUP; j++) {
        g_autofree char *uid = uid_of("b2b2b2b2", i * CROWD_GROUP + j, 0);
        put_waiting(extender->store, uid, i, group);
    }
    if (i % 10 == 0)
        place_group(extender, i, first, group);
}

static void reject_some(const struct crowd *crowd, struct store *store, int i)
{
    const struct rejection rejection = {.kind = REJECTION_ADMISSION, .refused = true};

    for (int j = 0; j < CROWD_REJECTS; j++) {
        g_autofree char *uid = uid_of("d4d4d4d4", i * CROWD_REJECTS + j, 0);
        put_unserved(crowd, store, uid, crowd->nodes / 2 + i);
        store_reject_pod(store, uid, &rejection);
    }
}

void crowd_queue_fill(const struct crowd_queue *queue, const struct crowd *crowd,
                      struct extender *extender)
{
    for (int i = 0; i < queue->rejecting; i++)
        reject_some(crowd, extender->store, i);
    for (int i = 0; i < queue->unserved; i++) {
        g_autofree char *uid = uid_of("c3c3c3c3", i, 0);
        put_unserved(crowd, extender->store, uid, i);
    }
    for (int i = 0; i < queue->groups; i++)
        put_group(extender, i);
    for (int i = 0; i < queue->waiting; i++) {
        g_autofree char *uid = uid_of("a1a1a1a1", i, 0);
        put_alone(extender->store, i, 0);
        ask(extender, uid);
    }
}

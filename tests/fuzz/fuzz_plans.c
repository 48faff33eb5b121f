/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is sent to be explained or fitted is refused with a message, or answered with JSON and a
 * table; the ledger is afterwards what it was before.
 */
#include "memory_file.h"

#include "explain/explain.h"
#include "explain/fit.h"
#include "base/log.h"
#include "inspect/views.h"
#include "snapshot/fit_body.h"
#include "snapshot/snapshot.h"

#include <string.h>

#define REPLICAS 50 /* more of the same tell nothing new */

/* Nodes of several dialects, some pods, a sick card, a cordon. */
static const char cluster_text[] =
    "{\"kind\":\"List\",\"items\":["
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"g1\"},\"status\":{\"capacity\":{"
    "\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"g2\"},\"spec\":{\"unschedulable\":true},"
    "\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"16\",\"aliyun.com/gpu-count\":\"1\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"t1\"},\"status\":{\"capacity\":{"
    "\"tencent.com/vcuda-core\":\"200\",\"tencent.com/vcuda-memory\":\"120\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"e1\"},\"status\":{\"capacity\":{"
    "\"elasticgpu.io/gpu-core\":\"200\",\"elasticgpu.io/gpu-memory\":\"32768\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"v1\"},\"status\":{\"capacity\":{"
    "\"volcano.sh/gpu-memory\":\"32000\",\"volcano.sh/gpu-number\":\"2\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"labels\":{\"nvidia.com/gpu.count\":\"4\","
    "\"nvidia.com/gpu.product\":\"T4\",\"nvidia.com/gpu.memory\":\"15360\"}},"
    "\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"4\"}}},"
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"h1\",\"annotations\":{"
    "\"hami.io/node-nvidia-register\":\"GPU-a,10,15360,100,NVIDIA-T4,0,true:\"}},"
    "\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"10\"}}},"
    "{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"kube-system\","
    "\"name\":\"unhealthy-gpu-g2\"},\"data\":{\"gpus\":\"0\"}},"
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"p\",\"uid\":\"u\","
    "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\","
    "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1767225600000000000\"}},\"spec\":{\"nodeName\":\"g1\","
    "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"6\"}}}]}},"
    "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"q\",\"uid\":\"w\"},"
    "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
    "\"nvidia.com/gpu\":\"1\"}}}]}}]}";

static struct store *known;
static struct cluster *cluster;

static void open_cluster(void)
{
    const struct store_options options = {.policy = policies, .silent = true, .hold_ms = 1000,
                                          .n_places = 4};
    struct memory_file file =
        memory_file_new((const uint8_t *)cluster_text, sizeof cluster_text - 1);

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    known = store_new(&options);
    cluster = snapshot_cluster_new(file.path, known, NULL);
    FUZZ_CHECK(cluster);
    memory_file_close(&file);
}

static void check_json(const GString *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    FUZZ_CHECK(json_parse(arena, text->str, text->len, NULL));
}

static void explain(const struct pod_view *pod)
{
    g_autoptr(explanation) explanation = explain_pod(known, cluster, pod);
    g_autoptr(GString) json = g_string_new(NULL), table = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, json);
    explanation_encode(&writer, explanation);
    check_json(json);
    explanation_write(table, explanation, true);
    FUZZ_CHECK(table->len > 0);
}

static void find_fit(const struct fit_body *body)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) json = g_string_new(NULL), table = g_string_new(NULL);
    struct json_writer writer;
    g_autoptr(fit) fit = fit_find(
        &(struct fit_query){
            .store = known,
            .cluster = cluster,
            .pod = body->has_pod ? &body->manifest.pod : NULL,
            .replicas = CLAMP(body->replicas, 1, REPLICAS),
            .drain = body->drain,
            .template = body->has_template ? &body->template : NULL,
        },
        &error);

    FUZZ_CHECK(!fit == !!error);
    if (!fit)
        return;
    json_writer_init(&writer, json);
    fit_encode(&writer, fit);
    check_json(json);
    fit_write(table, fit);
    FUZZ_CHECK(table->len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) before = g_string_new(NULL), after = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    struct fit_body body;

    if (!known)
        open_cluster();
    const bool ok = fit_body_parse(arena, (const char *)data, size, &body, &error);
    FUZZ_CHECK(ok == !error);
    if (!ok)
        return 0;
    view_nodes(known, NULL, before);
    if (body.has_pod)
        explain(&body.manifest.pod);
    find_fit(&body);
    view_nodes(known, NULL, after);
    FUZZ_CHECK(g_string_equal(before, after));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "planted.h"

#include "../prop/chance.h"
#include "holders.h"

#include <string.h>

static const char *const keys[] = {
    "ALIYUN_COM_GPU_MEM_IDX",
    "ALIYUN_COM_GPU_MEM_DEV",
    "ALIYUN_COM_GPU_MEM_POD",
    "ALIYUN_COM_GPU_MEM_ASSIGNED",
    "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
    "scheduler.framework.gpushare.allocation",
    "scheduler.framework.gpushare.assigned",
    "scheduler.framework.gpushare.assume-time",
    "gpushare.alibabacloud.com/core-percentage",
    "tencent.com/predicate-time",
    "tencent.com/predicate-node",
    "tencent.com/predicate-gpu-idx-0",
    "tencent.com/predicate-gpu-idx-1",
    "tencent.com/gpu-assigned",
    "tencent.com/vcuda-core-limit",
    "elasticgpu.io/container-c0",
    "elasticgpu.io/assumed",
    "nano-gpu.io/gpu-c0",
    "nano-gpu.io/gpu",
    "nano-gpu/container-c0",
    "nano-gpu/assume",
    "4pd.io/vgpu-node",
    "4pd.io/vgpu-time",
    "4pd.io/vgpu-ids-new",
    "4pd.io/devices-to-allocate",
    "4pd.io/bind-time",
    "4pd.io/bind-phase",
    "hami.sh/vgpu-devices-allocated",
    "hami.sh/vgpu-devices-to-allocate",
    "hami.io/vgpu-node",
    "hami.io/vgpu-time",
    "hami.io/vgpu-devices-to-allocate",
    "hami.io/vgpu-devices-allocated",
    "hami.io/bind-time",
    "hami.io/bind-phase",
    "hami.io/vgpu-mig-allocations",
    "volcano.sh/gpu-index",
    "volcano.sh/predicate-time",
    "volcano.sh/gpu-assigned",
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/devices-to-allocate",
    "volcano.sh/vgpu-node",
    "volcano.sh/vgpu-time",
    "volcano.sh/bind-time",
    "volcano.sh/bind-phase",
    "nvidia.com/pre-allocated",
    "nvidia.com/real-allocated",
    "nvidia.com/predicate-node",
    "nvidia.com/predicate-time",
    "scheduling.koordinator.sh/device-allocated",
    "scheduling.koordinator.sh/gpu-minors",
    "gpu-fraction",
    "gpu-memory",
    "received-resource-type",
    "run.ai/reserve_for_gpu_index",
    "gas-ts",
    "gas-container-cards",
    "gas-container-tiles",
    "gpuledger.io/gpu-replicas",
    "gpuledger.io/gpu-memory",
    "gpuledger.io/woken",
    "gpuledger.io/seal",
    "gpuledger.io/gpu-memory-min",
    "gpuledger.io/isolation",
    CLASS_KEY,
};
static const char *const label_keys[] = {
    "hami.io/vgpu-node",
    "elasticgpu.io/assumed",
    "runai-gpu-group",
    "kai.scheduler/queue",
    "aliyun.com/gpu-count",
    "nvidia.com/assigned-phase",
    "app",
};

static void append_devices(GString *text)
{
    int n = (int)chance_between(1, 4);

    for (int i = 0; i < n; i++) {
        const struct played_node *node = &played.nodes[chance_below(PLAYED_NODES)];
        int card = (int)chance_below(5);
        g_autofree char *uuid = holders_uuid(node, card);
        int64_t mib = chance_percent(50) ? 1 : node->card_mib;
        g_string_append_printf(text, "%s,NVIDIA,%d,%d:", uuid, (int)mib,
                               chance_percent(30) ? 100 : 0);
        if (chance_percent(30))
            g_string_append_c(text, ';');
    }
    if (chance_percent(80))
        g_string_append_c(text, ';');
}

/* Of any key: who knows what a reader makes of it. */
static char *any_value(void)
{
    static const char *const values[] = {
        "0",
        "1",
        "2",
        "7",
        "-1",
        "x",
        "",
        "0,1",
        "0,1,2,3",
        "1,0",
        "99999999999999999999",
        "4000000000000000000",
        "4102444800",
        "true",
        "false",
        "allocating",
        "success",
        "failed",
        "1000Gi",
        "card0",
        "card0,card1|card2",
        "{",
        "null",
        "[]",
        "{\"gpu\":[{\"minor\":0,\"resources\":{\"koordinator.sh/gpu-memory\":\"1\"}}]}",
        ("{\"gpu\":[{\"minor\":1,\"resources\":{\"koordinator.sh/gpu-core\":\"100\","
         "\"koordinator.sh/gpu-memory-ratio\":\"100\"}}]}"),
        "{\"0\":{\"0\":1}}",
        "{\"0\":{\"1\":100,\"2\":100}}",
        "0.5",
    };
    g_autoptr(GString) text = g_string_new(NULL);

    switch (chance_below(6)) {
    case 0:
        append_devices(text);
        return g_strdup(text->str);
    case 1:
        return g_strdup_printf("n%u", chance_below(PLAYED_NODES + 1));
    case 2:
        return g_strdup_printf("%" G_GINT64_FORMAT, g_get_real_time() /
                                                        (chance_percent(50) ? 1 : 1000000) *
                                                        (chance_percent(50) ? 1000 : 1));
    default:
        return g_strdup(values[chance_below(G_N_ELEMENTS(values))]);
    }
}

/* Of the kind that the key's readers expect, so that it says something. */
static char *fitting_value(const char *key)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (g_str_equal(key, CLASS_KEY))
        return g_strdup(chance_percent(60)   ? "training"
                        : chance_percent(50) ? "interactive"
                                             : "none");
    if (strstr(key, "devices") || strstr(key, "ids-new")) {
        append_devices(text);
        return g_strdup(text->str);
    }
    if (g_str_has_suffix(key, "time") || g_str_has_suffix(key, "TIME") ||
        g_str_has_suffix(key, "-ts"))
        return g_strdup(chance_percent(50) ? "4000000000000000000" : "4102444800");
    if (g_str_has_suffix(key, "node"))
        return g_strdup_printf("n%u", chance_below(PLAYED_NODES));
    if (g_str_has_suffix(key, "phase"))
        return g_strdup(chance_percent(60) ? "allocating" : "success");
    if (g_str_has_suffix(key, "ssigned") || g_str_has_suffix(key, "ASSIGNED"))
        return g_strdup(chance_percent(60) ? "false" : "true");
    if (strstr(key, "device-allocated"))
        return g_strdup_printf("{\"gpu\":[{\"minor\":%u,\"resources\":{\"koordinator.sh/gpu-core\":"
                               "\"1\",\"koordinator.sh/gpu-memory\":\"1\"}}]}",
                               chance_below(4));
    return g_strdup_printf("%u", chance_below(4));
}

char *planted_value(const char *key)
{
    return chance_percent(60) ? fitting_value(key) : any_value();
}

const char *planted_key(void)
{
    return keys[chance_below(G_N_ELEMENTS(keys))];
}

void planted_add(struct played_pod *pod)
{
    struct words *words = &pod->annotations;
    const char *first = planted_key();
    size_t prefix = strcspn(first, "/_");

    pod->tainted = true;
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        bool kin = strncmp(keys[i], first, prefix) == 0;
        if (!chance_percent(kin ? 70 : 3))
            continue;
        g_autofree char *value = planted_value(keys[i]);
        words_set(words, keys[i], value);
    }
}

const char *planted_label_key(void)
{
    return label_keys[chance_below(G_N_ELEMENTS(label_keys))];
}

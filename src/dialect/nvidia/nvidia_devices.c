/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the resources that NVIDIA's plugin has devices of
 * (NVIDIA/k8s-device-plugin@v0.20.0:README.md). */
#include "dialect/nvidia/nvidia.h"

#include <string.h>

#define GPU "nvidia.com/gpu"
#define GPU_SHARED GPU SHARED_SUFFIX
#define GIB (INT64_C(1) << 30)

bool nvidia_is_device(const char *resource)
{
    return strcmp(resource, GPU) == 0 || strcmp(resource, GPU_SHARED) == 0 ||
           (g_str_has_prefix(resource, NVIDIA_MIG_PREFIX) &&
            resource[strlen(NVIDIA_MIG_PREFIX)]);
}

/* A number and what follows it; no number is as large as `max`. */
static bool take_number(const char **text, const char *unit, guint64 max, int64_t *ret_value)
{
    char *end;
    const guint64 value = g_ascii_isdigit(**text) ? g_ascii_strtoull(*text, &end, 10) : max;

    if (value == 0 || value >= max || !g_str_has_prefix(end, unit))
        return false;
    *text = end + strlen(unit);
    *ret_value = (int64_t)value;
    return true;
}

bool nvidia_read_instance(const char *resource, struct instance_size *ret_size)
{
    int64_t slices, gigabytes;

    if (!g_str_has_prefix(resource, NVIDIA_MIG_PREFIX))
        return false;
    const char *text = resource + strlen(NVIDIA_MIG_PREFIX);
    *ret_size = (struct instance_size){.shared = g_str_has_suffix(resource, SHARED_SUFFIX)};
    if (take_number(&text, "g.", 100, &slices) && take_number(&text, "gb", 10000, &gigabytes))
        *ret_size = (struct instance_size){gigabytes * GIB, slices, ret_size->shared};
    return true;
}

static size_t bare_length(const char *resource)
{
    return strlen(resource) - (g_str_has_suffix(resource, SHARED_SUFFIX) ? strlen(SHARED_SUFFIX) : 0);
}

bool nvidia_are_of_pool(const struct node *node, const struct share *share, const struct pool *pool)
{
    if (!share->device || g_str_equal(share->device, pool->resource))
        return share->device;
    const size_t length = bare_length(share->device);
    return length == bare_length(pool->resource) &&
           strncmp(share->device, pool->resource, length) == 0 &&
           !node_pool(node, share->device);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of NVIDIA's dialect share: nvidia.c has its row, its pods and the placement,
 * nvidia_node.c the nodes. */
#include <gpuledger/dialect.h>

/* Source: NVIDIA/k8s-device-plugin@v0.20.0:README.md, api/config/v1/consts.go */
#define NVIDIA_MIG_PREFIX "nvidia.com/mig-"
#define SHARED_SUFFIX ".shared"

/* No node has as many, and no pod asks for as many. */
/* Of one resource. They are only counted; times the memory of a card they fit in 62 bits. */
#define NVIDIA_DEVICES_MAX 262144

/* The name of a resource of NVIDIA's plugin. */
bool nvidia_is_device(const char *resource);

/* "nvidia.com/mig-2g.10gb.me": two slices, and memory as people read it. */
bool nvidia_read_instance(const char *resource, struct instance_size *ret_size);

/* Whether a pod has devices of this pool, or had them by another name when they were given:
 * "nvidia.com/gpu" becomes "nvidia.com/gpu.shared" if the plugin is configured to rename it. */
bool nvidia_are_of_pool(const struct node *node, const struct share *share, const struct pool *pool);

/* Whole cards, or time-slices of them: MIG and MPS no profile can say. */
bool nvidia_write_profile(const struct card_profile *profile, struct profile_words *words);

bool nvidia_read_pools(const struct node_view *view, const struct dialect_options *options,
                       struct topology *ret_topology, char **ret_warning, GError **error);

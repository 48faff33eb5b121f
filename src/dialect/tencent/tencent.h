/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tencent gpu-manager: what its files share. */
#include "dialect/rows.h"

DIALECT_ROW(tencent, 30);

/* Source: tkestack/gpu-manager@8cd842e:pkg/types/types.go;
 * tkestack/gpu-admission@47d56ae:pkg/util/util.go (100 of a card) */
#define RESOURCE_CORE "tencent.com/vcuda-core"
#define RESOURCE_MEMORY "tencent.com/vcuda-memory"

#define BLOCK_BYTES (INT64_C(256) << 20) /* of memory */
#define CARD_CORE 100

/* tencent_node.c: as struct dialect has it, but for whose topology it is. */
bool tencent_read_topology(const struct node_view *view, const struct dialect_options *options,
                           struct topology *ret_topology, char **ret_warning, GError **error);

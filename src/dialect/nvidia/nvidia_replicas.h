/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What --nvidia-config-replicas says: how many devices each configuration of NVIDIA's plugin makes of a
 * card, "whole=1,quarter=4". Pure functions. */
#include "core/item_list.h"

#include <stdint.h>

#define NVIDIA_REPLICAS_MAX 65536

extern const struct item_list nvidia_replicas_list;

/* 0: the table, which may be NULL, does not name the configuration. */
int64_t nvidia_replicas_find(const char *table, const char *configuration);

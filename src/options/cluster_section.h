/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of what cluster this is about. */
#include "core/section/section.h"

struct cluster_settings {
    const char *kubeconfig;
    const char *context;
    const char *snapshot;
    const char *snapshot_out;
    int64_t api_timeout_ms;
};
SECTION_ROW(cluster, 100);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of commands that change nodes, or move pods. */
#include "core/section/section.h"

struct maintenance_settings {
    int64_t from; /* of peers */
    bool dry_run;
    const char *empty;      /* NODE or NODE/CARD */
    const char *group;      /* NAMESPACE/NAME */
    const char *defragment; /* GPUs */
    const char *waiting;    /* a time */
    const char *only;
    bool end;
    int64_t max_moves, max_per_workload, max_per_node, max_per_namespace, max_per_hour;
    const char *moves_namespace;
    const char *window; /* as in maintain/window.h; "": always */
    bool apply;
    const char *mig_configs; /* "": none */
    bool force;
    int64_t evict_timeout_ms;
    int64_t wait_for_nodes_ms;
};
SECTION_ROW(maintenance, 810);

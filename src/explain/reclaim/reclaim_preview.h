/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lent quota which is taken back for a pod that finds no room, or for its group:
 * who gives what back, and when; or why nobody does. Who has asked to stay, and what a budget allows, shows
 * when they are to be evicted.
 */
#include "explain/reclaim/reclaim_plan.h"
#include "json/json.h"

struct reclaim_preview {
    struct reclaim_plan *plan;
    int64_t wait_ms; /* until then; 0: at once */
    guint n_pods;    /* that are to come together */
};

/* NULL: nothing is taken back here, or the group is not due. */
struct reclaim_preview *reclaim_preview_find(struct store *store, const struct pod_view *pod,
                                             const struct request *request);
void reclaim_preview_free(struct reclaim_preview *preview); /* NULL is ignored */

void reclaim_preview_encode(struct json_writer *writer, const struct reclaim_preview *preview);
void reclaim_preview_write(GString *text, const struct reclaim_preview *preview);

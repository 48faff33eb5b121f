/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a ConfigMap orders: a plan that gpuledger carries out by itself (--plans, docs/plan.md). Its data has the
 * goal and the bounds, by the names of the command's options:
 *
 *   metadata: {name: empty-n1, labels: {gpuledger.io/plan: run}}
 *   data: {empty: n1/3, max-per-hour: "4", window: "Mon-Fri 22:00-06:00 Europe/Berlin"}
 *
 * What has come of it so far is in an annotation of it (maintain/plans/plan_status.h). Pure.
 */
#include "json/json.h"
#include "maintain/executor.h"
#include "maintain/plans/plan_aim.h"

#define PLAN_ORDER_LABEL "gpuledger.io/plan"
#define PLAN_ORDER_RUN "run"     /* any other value: it is not to be carried out, or no longer */
#define PLAN_ORDER_DATA_MAX 4096 /* bytes of its data; more are not read */

struct plan_order {
    char *ns, *name, *uid;
    char *version; /* its resourceVersion */
    char *created; /* as the API server writes it, so that texts are in order of time */
    char *digest;  /* of its data: another order has another */
    char *status;  /* the annotation; NULL: there is none */
    bool wanted;
    char *problem; /* why it cannot be carried out; what follows is not set then. NULL: it can */

    struct plan_aim aim;
    uint32_t moves_max;
    struct executor_budgets budgets;
    struct window *window; /* NULL: always */
    int64_t timeout_ms;
};

/* NULL, with an error: it is no ConfigMap. */
struct plan_order *plan_order_decode(struct json_arena *arena, const cJSON *object, GError **error);
void plan_order_free(struct plan_order *order); /* NULL is ignored */
typedef struct plan_order plan_order;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(plan_order, plan_order_free)

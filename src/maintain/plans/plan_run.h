/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Carries out what one ConfigMap orders, from wherever it stands. For plan_service.c; its thread. */
#include "base/worker.h"
#include "evict/pauses.h"
#include "maintain/plans/plan_order.h"
#include "maintain/plans/plan_service.h"
#include "maintain/plans/plan_status.h"

#define PLAN_PAUSE_MS INT64_C(3600000)

struct plan_run_args {
    const struct plan_service_options *with;
    struct worker *worker; /* when that is told to end, it ends */
    uint64_t term;         /* in which this replica serves, as long as it goes on */
    const GArray *past;    /* struct executor_past, as struct executor has it */
    GHashTable *
        passed; /* UIDs of pods that wait and have been helped -> int64_t: until when they are passed over, by
                         * clock_ms */
    struct pauses *waiters; /* of those for whom no moves helped, or in vain */
    struct pauses *stayed;  /* of controllers of which a pod has not moved */
    GHashTable *turns;      /* of those who wait (waiting_turns_new) */
    struct plan_order *order;
    struct plan_status *status; /* both change with what is written */
};

/* Of those who wait, chooses one for whom moves make room; it is in the order and in the status then. False:
 * there is nobody, and why; free with g_free. */
bool plan_run_choose(const struct plan_run_args *args, char **ret_why);

/* What it would do first, and nothing is done. Free with g_free. */
char *plan_run_observe(const struct plan_run_args *args);

/* Until it is done, has stopped, has to wait, or is left to another replica; all but the last is in the status then,
 * and in the ConfigMap if it can be written. */
void plan_run(const struct plan_run_args *args);

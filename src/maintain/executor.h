/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carries out a plan (maintain/relocation.h): the first step of it, as the cluster then is; then the cluster
 * is looked at again, and another plan is made. So it goes on from wherever it was cut off, and stops where
 * things do not come closer to the goal, at anything that it does not know, and when it is told to.
 *
 * Room is kept for the pod to admit, and for the successor of the pod that goes (maintain/keeping.h).
 *
 * One thread.
 */
#include "maintain/keeping.h"
#include "maintain/relocation.h"
#include "maintain/window.h"

/* Steps of one run at most, in any hour for the last; 0: any number. */
struct executor_budgets {
    uint32_t per_owner, per_node, per_namespace, per_hour;
};

enum executor_event {
    EXECUTOR_STEP,   /* it begins */
    EXECUTOR_MOVED,  /* its pod has gone, and the successor is Ready */
    EXECUTOR_FAILED, /* it was refused, or nobody knows */
    EXECUTOR_EVENTS_N
};

struct executor {
    struct api_client *client;
    struct keeping *keeping;
    struct executor_budgets budgets;
    const struct window *window; /* no step begins outside of it; NULL: always */
    bool force;                  /* as in struct drain_query, like the next */
    int64_t timeout_ms;
    const char *ns,
        *name; /* of the pod to admit, for which room is kept until it has a node; or NULL */

    /* Looks at the cluster and makes a plan; NULL, with an error. */
    struct relocation *(*look)(void *data, GError **error);
    /* Before each step; false, with an error: it stops. */
    bool (*may_go_on)(void *data, GError **error);
    void (*note)(void *data, enum executor_event event, const struct relocation_step *step,
                 const char *why);
    void (*tell)(void *data, const char *text); /* for people, as it goes */
    void *data;
};

/* Until the goal is reached; `plan` is the first, and then the last. False, with an error: it has stopped, and
 * why. */
bool executor_run(const struct executor *executor, struct relocation **plan, guint *ret_moved,
                  GError **error);

/* How long until another step may begin after those that began at `times_ms`, int64_t, in order; 0: now. */
int64_t executor_wait_ms(const GArray *times_ms, uint32_t per_hour, int64_t now_ms);

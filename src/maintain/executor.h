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
#include "evict/moves.h"
#include "maintain/keeping.h"
#include "maintain/relocation.h"
#include "maintain/window.h"

/* Steps of one run at most; of the last in any hour, with those of all others that count it. 0: any number. */
struct executor_budgets {
    uint32_t per_owner, per_node, per_namespace, per_hour;
};

enum executor_event {
    EXECUTOR_STEP,   /* it begins */
    EXECUTOR_MOVED,  /* its pod has gone, and, unless it just ends, the successor is Ready */
    EXECUTOR_FAILED, /* it was refused, or nobody knows */
    EXECUTOR_GONE,   /* its pod had gone by itself: nobody was evicted */
    EXECUTOR_EVENTS_N
};

/* What becomes of a step; borrowed. */
struct executor_news {
    enum executor_event event;
    const struct relocation_step *step;
    guint n_ready;   /* pods of its controller, before it */
    const char *why; /* it has failed */
};

/* A step that was taken before this run, which draws on its budgets; borrowed. */
struct executor_past {
    const char *owner; /* UID; NULL: none */
    const char *node, *ns;
};

struct executor {
    struct api_client *client;
    struct store *store; /* as struct door_order has it; so have these: */
    struct permits *permits;
    struct leadership *leadership;
    uint64_t term;
    struct keeping *keeping;
    struct executor_budgets budgets;
    const struct moves *moves;   /* of the hour, if it has a bound */
    const struct window *window; /* no step begins outside of it; NULL: always */
    bool force;                  /* as in struct drain_query, like the next */
    int64_t timeout_ms;
    const char *ns,
        *name; /* of the pod to admit, for which room is kept until it has a node; or NULL */

    /* Set where it stops only since its window is closed or the hour is full: it waits for neither then, and may
     * be run again. NULL: it waits for the hour. */
    bool *paused;
    /* Set where it stops only since no moves come closer to the goal. NULL: nobody wants to know. */
    bool *stalled;
    /* Set where the pod to admit has not come to the room that was kept for it. NULL likewise. */
    bool *in_vain;
    const GArray *past; /* struct executor_past; NULL: none */

    /* Looks at the cluster and makes a plan; NULL, with an error. */
    struct relocation *(*look)(void *data, GError **error);
    /* Before each step, of which the plan is, and after the last, as the cluster is found to be: false, with
     * an error: it stops. NULL: it never does. */
    bool (*may_go_on)(void *data, const struct relocation *plan, GError **error);
    /* While something is waited for: false, with an error: it stops. NULL likewise. */
    bool (*is_wanted)(void *data, GError **error);
    /* False, with an error, of a step that begins: it does not, and it stops. NULL: nobody wants to know. */
    bool (*note)(void *data, const struct executor_news *news, GError **error);
    /* Where it stops only since a pod of the controller of that UID, which may be NULL, has not moved: it stays after
     * all, its budget gave nothing, it has not ended or was not made again in time. NULL likewise. */
    void (*note_lost)(void *data, const char *ns, const char *owner);
    void (*tell)(void *data, const char *text); /* for people, as it goes */
    void *data;
};

/* Until the goal is reached; `plan` is the first, and then the last. False, with an error: it has stopped, and
 * why. `ret_moved`: pods, those of this plan in the past included. */
bool executor_run(const struct executor *executor, struct relocation **plan, guint *ret_moved,
                  GError **error);

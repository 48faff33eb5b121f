/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a plan that the command line asks for is to reach. One thread. */
#include "maintain/findings.h"
#include "maintain/plans/plan_aim.h"
#include "maintain/relocation.h"
#include "maintain/window.h"
#include "options/config.h"

/* What plans aim at, or room for a pod in a file. */
struct goal {
    struct plan_aim aim;
    char *file;
    GHashTable *passed;      /* UIDs of pods that wait and are passed over; or NULL */
    int64_t fragmented_most; /* as struct relocation_query has it */
    char **only;             /* pods that may be moved; NULL: all */
    bool named;              /* the cluster has, or had, each of them */
    GHashTable *ends; /* their UIDs when they were first looked for, if they just end; else NULL */
    struct window *window; /* when it may be carried out; NULL: always */
    char *by; /* which plan it is, if it is carried out; and the UID of a pod in a file */
};
void goal_clear(struct goal *goal);
typedef struct goal goal_cleared;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(goal_cleared, goal_clear)

bool goal_read(const struct config *config, struct goal *ret_goal, GError **error);

/* Reads the cluster, and makes a plan for it; what an audit finds in it is added to `findings`, unless that is
 * NULL. NULL, with an error: it cannot be read, or has not what the goal names. */
struct relocation *goal_look(const struct config *config, struct goal *goal,
                             struct findings *findings, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a plan that the command line asks for is to reach. One thread. */
#include "explain/card_place.h"
#include "maintain/findings.h"
#include "maintain/relocation.h"
#include "maintain/window.h"
#include "options/config.h"

/* A pod of the cluster, one in a file, or a place to be emptied. */
struct goal {
    char *ns, *name;
    char *file;
    struct card_place place;
    char **only;           /* pods that may be moved; NULL: all */
    bool named;            /* the cluster has, or had, each of them */
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

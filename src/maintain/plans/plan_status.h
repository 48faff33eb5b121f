/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What has come of a plan that a ConfigMap orders, as its annotation says it: for people, and for whoever goes on
 * with it after a restart or a takeover, who knows nothing else.
 *
 *   {"phase":"running","order":DIGEST,"goal":"nobody on n1/3","for":"ml/big","doing":"…","moved":2,"left":1,
 *    "fragmentedMost":1500,"known":["foreign n4 test/x"],"steps":[…]}      steps as step_log_encode writes them
 *
 * Pure.
 */
#include "maintain/plans/step_log.h"

#define PLAN_STATUS_KEY "gpuledger.io/plan-status"
#define PLAN_STATUS_MAX ((size_t)200 << 10) /* bytes; longer ones are not read */
#define PLAN_STATUS_TEXT_MAX 400            /* characters of its sentence */

enum plan_phase {
    PLAN_PHASE_RUNNING,
    PLAN_PHASE_WAITING, /* for its window, or for the hour */
    PLAN_PHASE_DONE,
    PLAN_PHASE_STOPPED,
    PLAN_PHASE_REFUSED, /* the order cannot be understood */
    PLAN_PHASES
};
extern const char *const plan_phases[PLAN_PHASES];

struct plan_status {
    enum plan_phase phase;
    char *digest; /* of the order that it is about */
    char *goal;   /* NULL: not known yet */
    char *waiter; /* "NAMESPACE/NAME" of the pod that waits for which it is under way; or NULL */
    char *text;   /* what is being done, or why it has stopped; or NULL */
    guint moved;
    guint left; /* moves, by the last plan */
    int64_t
        fragmented_most; /* thousandths of a GPU, what it is to come down to; -1: nobody has looked */
    char **known;        /* texts of findings that were there before; NULL: nobody has looked */
    struct step_log *log; /* the last of its steps, those of orders before it too */
};

struct plan_status *plan_status_new(const char *digest);
void plan_status_free(struct plan_status *status); /* NULL is ignored */
typedef struct plan_status plan_status;            /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(plan_status, plan_status_free)

/* What is being done, cut to what fits. */
void plan_status_tell(struct plan_status *status, const char *text);

/* Free with g_free. */
char *plan_status_format(const struct plan_status *status);
/* NULL, with an error: it cannot be understood. */
struct plan_status *plan_status_parse(const char *text, GError **error);

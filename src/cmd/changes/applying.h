/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carries out the plan that the command line asks for (maintain/executor.h). Before each step, and after the last,
 * the cluster is looked at as `gpuledger audit` does without an extender, and the extender that the command line
 * names, if it does, has to audit its ledger (maintain/findings.h). One thread.
 */
#include "cmd/changes/goal.h"
#include "maintain/plans/step_log.h"

struct applied {
    struct relocation *plan; /* the last one; NULL: none was made */
    struct step_log *log;    /* what was done; NULL: nothing was begun */
    guint moved;
};
void applied_clear(struct applied *applied);
typedef struct applied applied; /* for g_auto */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(applied, applied_clear)

/* Until the goal is reached, or no plan reaches it. False, with an error: it has stopped, and why. In either case
 * `applied` is set as far as it has come. */
bool applying_run(const struct config *config, struct goal *goal, struct applied *applied,
                  GError **error);

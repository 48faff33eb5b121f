/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The marks that plans leave on nodes (wire/plan_mark.h): what is kept for a plan, and what remains of plans whose
 * process ended early. `by`: the plan, as its marks name it.
 */
#include "maintain/keeping.h"
#include "maintain/plans/plan_service.h"

/* What the last pod has left is still kept for nobody, as far as the store knows. */
bool plan_marks_keep_left(struct store *store, const char *by);

/* What was kept for this plan goes on being kept; what plans have left that were killed goes. */
bool plan_marks_take_over(const struct plan_service_options *with, const char *by,
                          struct keeping *keeping, GError **error);

/* Takes away what plans that were killed have left on nodes. */
void plan_marks_sweep(const struct plan_service_options *with);

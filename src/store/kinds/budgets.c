/* SPDX-License-Identifier: Apache-2.0 */
/* PodDisruptionBudgets, which nobody waits for. */
#include "store/kinds/kind.h"
#include "store/store_state.h"
#include "wire/budget.h"

KIND_ROW(budgets, 3);

KIND_VIEW(budget);

static void apply(const struct kind_call *call, const void *view)
{
    budgets_set(call->store->budgets, view, call->generation);
}

static void forget(const struct kind_call *call, const struct object_name *name)
{
    budgets_remove(call->store->budgets, name->ns, name->name);
}

static void sweep(const struct kind_call *call)
{
    budgets_sweep(call->store->budgets, call->generation);
}

const struct kind kind_budgets = {
    KIND_NAME("budget"),
    .feed = "poddisruptionbudgets",
    .resource = "poddisruptionbudgets",
    .kind = "PodDisruptionBudget",
    .api = "/apis/policy/v1",
    .older_api = "/apis/policy/v1beta1",
    .optional = true,
    .unawaited = true,
    KIND_OF_VIEW(budget),
    .apply = apply,
    .remove = forget,
    .sweep = sweep,
};

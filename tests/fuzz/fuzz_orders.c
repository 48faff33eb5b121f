/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a ConfigMap orders, and says of what has come of it: it is read or refused with a message, what can be
 * carried out has a goal and bounds, and a status that is read is written as it was.
 */
#include "target.h"

#include "maintain/findings.h"
#include "maintain/plans/plan_order.h"
#include "maintain/plans/plan_status.h"
#include "plan/plan.h"

#include <string.h>

static void check_status(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(plan_status) status = plan_status_parse(text, &error);

    FUZZ_CHECK(status || (error && *error->message));
    if (!status)
        return;
    FUZZ_CHECK(step_log_n(status->log) <= STEP_LOG_MAX);
    FUZZ_CHECK(!status->known || g_strv_length(status->known) <= FINDINGS_KNOWN_MAX);
    g_autofree char *once = plan_status_format(status);
    g_autoptr(plan_status) again = plan_status_parse(once, NULL);
    FUZZ_CHECK(again || strlen(once) > PLAN_STATUS_MAX);
    if (!again)
        return;
    g_autofree char *twice = plan_status_format(again);
    FUZZ_CHECK(strcmp(once, twice) == 0);
}

static void check_order(const struct plan_order *order)
{
    FUZZ_CHECK(order->ns && order->name && order->uid && order->version && order->digest);
    if (order->status)
        check_status(order->status);
    if (order->problem)
        return;
    FUZZ_CHECK((order->aim.name != NULL) + (order->aim.group != NULL) +
                   (order->aim.place.node != NULL) + (order->aim.less > 0) + order->aim.waits ==
               1);
    FUZZ_CHECK(!order->aim.waits || (order->budgets.per_hour > 0 && order->aim.waited_ms >= 0));
    FUZZ_CHECK(order->moves_max >= 1 && order->moves_max <= PLAN_MOVES_MAX);
    FUZZ_CHECK(order->timeout_ms >= 1000 && order->timeout_ms <= 86400000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    const cJSON *object = json_parse(arena, (const char *)data, size, NULL);
    g_autoptr(plan_order) order = object ? plan_order_decode(arena, object, &error) : NULL;

    FUZZ_CHECK(!object || order || (error && *error->message));
    if (order)
        check_order(order);
    return 0;
}

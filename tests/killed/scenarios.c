/* SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

const struct scenario *const scenarios[] = {
    &plan_scenario,
    &plan_hourly_scenario,
    &plan_empty_scenario,
    &plan_group_scenario,
    &half_scenario,
    &half_many_scenario,
    &switch_scenario,
    &switch_hourly_scenario,
    &reclaim_scenario,
    &keys_scenario,
    NULL,
};

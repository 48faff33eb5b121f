/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is played, in files of their own. */
#include "replica.h"

/* Ends with NULL. */
extern const struct scenario *const scenarios[];

extern const struct scenario plan_scenario, plan_hourly_scenario, plan_empty_scenario,
    plan_group_scenario;
extern const struct scenario half_scenario, half_many_scenario;
extern const struct scenario switch_scenario, switch_hourly_scenario;
extern const struct scenario reclaim_scenario;
extern const struct scenario keys_scenario;

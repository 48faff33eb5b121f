/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What simulations came to, side by side: a table, or JSON. Figures of several seeds are
 * means, and their spread the standard deviation of one seed.
 */
#include "simulate/simulation.h"

struct simulate_report {
    const struct policy *const *policies;
    size_t n_policies;
    const uint32_t *seeds;
    size_t n_seeds;
    const struct simulation_result *results; /* of each policy, one per seed */
    int64_t percent;   /* as in struct simulation_options */
    bool gangs;        /* groups come whole or not at all */
    bool moves;        /* pods are moved for others */
    int64_t lifetimes;
    bool times; /* how long decisions took is shown: it differs from run to run */
    bool paced; /* node sides take time */
};

void simulate_report_table(const struct simulate_report *report, GString *text);
void simulate_report_json(const struct simulate_report *report, GString *text);

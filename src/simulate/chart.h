/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A drawing of simulations, as SVG: allocation against what came, and what is free at the end, for
 * each policy. Pure; the same figures give the same bytes.
 */
#include "simulate/simulation.h"

#define CHART_POLICIES_MAX 8

struct chart_policy {
    const char *name;
    const GArray *points;        /* struct simulation_point, by x; means over seeds */
    struct simulation_point end;
};

struct chart {
    const char *title;    /* plain text */
    bool lifetimes;       /* what x counts; else percent */
    const struct chart_policy *policies;
    size_t n_policies;    /* at most CHART_POLICIES_MAX */
};

void chart_write(const struct chart *chart, GString *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which of several layouts of a node's cards serves the expected pods best. Pods name the devices that
 * they want ("nvidia.com/mig-1g.5gb"), so one cannot stand in for another.
 *
 * Expected are pods in the mix that was seen, as many as fill all cards that are looked at; what other
 * nodes have is given to them as well. A layout serves the part of them, by size, for which there are
 * devices then. Pure functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Less than this is no difference. */
#define LAYOUT_SAME 0.005

/* Devices of one resource that pods want. */
struct layout_wish {
    double count;     /* how often they are wanted, in any unit; 0 or more */
    double size;      /* of one device, in any unit; above 0 */
    double elsewhere; /* devices that other nodes have */
};

struct layout {
    const double *devices; /* of the node as a whole, for each wish */
    uint32_t n_ended;      /* pods that end for it */
    double serves;         /* the answer, 0 to 1 */
};

/* `whole`: what the node's cards and those elsewhere are together, in the unit of sizes. Sets what each
 * layout serves and returns the best one: the most is served, LAYOUT_SAME apart, then the
 * fewest pods end, then the most is served, then the first. At
 * least one layout; without wishes all serve nothing. */
size_t layout_choose(const struct layout_wish *wishes, size_t n_wishes, double whole,
                     struct layout *layouts, size_t n_layouts);

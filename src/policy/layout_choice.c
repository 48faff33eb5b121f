/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/layout_choice.h"

#include <glib.h>

/* So much is asked for each time that all wishes come once. */
static double size_of_all(const struct layout_wish *wishes, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += wishes[i].count * wishes[i].size;
    return sum;
}

static double serve(const struct layout_wish *wishes, size_t n, double whole,
                    const struct layout *layout)
{
    const double all = size_of_all(wishes, n);
    double served = 0;

    if (all <= 0 || whole <= 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const double wanted = wishes[i].count * whole / all;
        served += MIN(wanted, wishes[i].elsewhere + layout->devices[i]) * wishes[i].size;
    }
    return served / whole;
}

size_t layout_choose(const struct layout_wish *wishes, size_t n_wishes, double whole,
                     struct layout *layouts, size_t n_layouts)
{
    double most = 0;
    size_t best = n_layouts;

    for (size_t i = 0; i < n_layouts; i++) {
        layouts[i].serves = serve(wishes, n_wishes, whole, &layouts[i]);
        most = MAX(most, layouts[i].serves);
    }
    for (size_t i = 0; i < n_layouts; i++) {
        if (layouts[i].serves >= most - LAYOUT_SAME &&
            (best == n_layouts || layouts[i].n_ended < layouts[best].n_ended ||
             (layouts[i].n_ended == layouts[best].n_ended &&
              layouts[i].serves > layouts[best].serves)))
            best = i;
    }
    return best;
}

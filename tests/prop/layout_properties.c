/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout that is chosen for a node, against brute force: pods come one by one, in the mix that is
 * expected, until all cards would be full, and each takes a device of its kind if one is left.
 */
#include "chance.h"
#include "policy/layout_choice.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define WISHES 4
#define LAYOUTS 5

struct small_world {
    int n_wishes, n_layouts;
    int counts[WISHES], sizes[WISHES], elsewhere[WISHES];
    int devices[LAYOUTS][WISHES], ended[LAYOUTS];
    int rounds; /* so often all wishes come */
};

static void make(struct small_world *world)
{
    *world = (struct small_world){.n_wishes = (int)chance_between(1, WISHES),
                                  .n_layouts = (int)chance_between(1, LAYOUTS),
                                  .rounds = (int)chance_between(1, 11)};
    for (int i = 0; i < world->n_wishes; i++) {
        world->counts[i] = (int)chance_between(i == 0 ? 1 : 0, 5);
        world->sizes[i] = (int)chance_between(1, 8);
        world->elsewhere[i] = (int)chance_between(0, 19);
    }
    for (int i = 0; i < world->n_layouts; i++) {
        world->ended[i] = (int)chance_between(0, 2);
        for (int j = 0; j < world->n_wishes; j++)
            world->devices[i][j] = (int)chance_between(0, 19);
    }
}

static int whole_of(const struct small_world *world)
{
    int sum = 0;

    for (int i = 0; i < world->n_wishes; i++)
        sum += world->counts[i] * world->sizes[i];
    return sum * world->rounds;
}

/* What is served of all that comes. */
static double play(const struct small_world *world, int layout)
{
    int left[WISHES], served = 0;

    for (int i = 0; i < world->n_wishes; i++)
        left[i] = world->elsewhere[i] + world->devices[layout][i];
    for (int round = 0; round < world->rounds; round++) {
        for (int i = 0; i < world->n_wishes; i++) {
            for (int pod = 0; pod < world->counts[i]; pod++) {
                if (left[i] == 0)
                    continue;
                left[i]--;
                served += world->sizes[i];
            }
        }
    }
    return (double)served / whole_of(world);
}

/* Whether anybody would rather have another one. On the very line between those that count as equal and
 * those that do not, rounding decides, and either will do. */
static bool is_better(const struct small_world *world, int a, int b, const double *served)
{
    double most = 0;

    for (int i = 0; i < world->n_layouts; i++)
        most = fmax(most, served[i]);
    if (served[a] < most - LAYOUT_SAME + 1e-9)
        return false;
    if (served[b] < most - LAYOUT_SAME - 1e-9 || world->ended[a] < world->ended[b])
        return true;
    return world->ended[a] == world->ended[b] && served[a] > served[b] + 1e-9;
}

static void check(const struct small_world *world)
{
    struct layout_wish wishes[WISHES];
    struct layout layouts[LAYOUTS];
    double devices[LAYOUTS][WISHES], served[LAYOUTS];

    for (int i = 0; i < world->n_wishes; i++)
        wishes[i] =
            (struct layout_wish){world->counts[i] * 0.37, world->sizes[i], world->elsewhere[i]};
    for (int i = 0; i < world->n_layouts; i++) {
        for (int j = 0; j < world->n_wishes; j++)
            devices[i][j] = world->devices[i][j];
        layouts[i] = (struct layout){.devices = devices[i], .n_ended = (uint32_t)world->ended[i]};
        served[i] = play(world, i);
    }
    const size_t best = layout_choose(wishes, (size_t)world->n_wishes, whole_of(world), layouts,
                                      (size_t)world->n_layouts);
    HOLDS(best < (size_t)world->n_layouts, "%zu", best);
    for (int i = 0; i < world->n_layouts; i++) {
        HOLDS(fabs(layouts[i].serves - served[i]) < 1e-9, "layout %d: %f, and not %f", i,
              layouts[i].serves, served[i]);
        HOLDS(!is_better(world, i, (int)best, served), "%d rather than %zu", i, best);
    }
}

int main(void)
{
    struct small_world world;

    chance_init("layout", 200000);
    while (chance_next_event()) {
        make(&world);
        check(&world);
    }
    return 0;
}

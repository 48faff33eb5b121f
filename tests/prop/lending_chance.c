/* SPDX-License-Identifier: Apache-2.0 */
/* What happens at random in the cluster of lending_cluster.h. */
#include "chance.h"
#include "lending_cluster.h"

void lending_submit(void *data)
{
    lending_create((int)chance_below((uint32_t)lending.n_spaces),
                   (int)chance_between(1, LENDING_CARD), (int)chance_below(3), chance_percent(70));
}

void lending_crowd(void *data)
{
    const int space = (int)chance_below((uint32_t)lending.n_spaces);
    const int units = (int)chance_between(1, LENDING_CARD);

    for (int i = 0; i < 12; i++)
        lending_create(space, chance_percent(50) ? units : (int)chance_between(1, LENDING_CARD),
                       (int)chance_below(3), chance_percent(70));
    lending_step();
    lending_step();
}

void lending_finish(void *data)
{
    int live[LENDING_PODS], n = 0;

    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[i].stage == STAGE_WAITS || lending.pods[i].stage == STAGE_HELD)
            live[n++] = i;
    }
    if (n > 0)
        lending_end(live[chance_below((uint32_t)n)]);
}

void lending_leave(void *data)
{
    const int space = (int)chance_below((uint32_t)lending.n_spaces);

    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[i].space == space && chance_percent(97) &&
            (lending.pods[i].stage == STAGE_WAITS || lending.pods[i].stage == STAGE_HELD))
            lending_end(i);
    }
    lending_step();
}

void lending_pass_time(void *data)
{
    lending_step();
}

void lending_change_replica(void *data)
{
    lending.n_takeovers++;
    lending_take_over();
}

void lending_stir(void *data)
{
    lending.chaos = !lending.chaos;
}

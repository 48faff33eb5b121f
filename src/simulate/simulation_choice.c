/* SPDX-License-Identifier: Apache-2.0 */
/* `--policy auto` in a simulation: instead of now and then, a look each time that arrivals have asked for
 * another half of the cluster's GPU. It takes no time. */
#include "policy/policy_choice.h"
#include "simulate/chooser.h"
#include "simulate/simulation_state.h"

#define LOOK_EVERY 0.5 /* of the GPUs */

void simulation_choose(struct simulation *simulation)
{
    if (!simulation->choice)
        return;
    if (simulation->look_at == 0)
        simulation->look_at = simulation->asked + LOOK_EVERY * simulation->gpus;
    if (simulation->asked < simulation->look_at)
        return;
    simulation->look_at += LOOK_EVERY * simulation->gpus;
    if (chooser_look(simulation->choice, simulation->store, simulation->options->cancelled))
        store_set_policy(simulation->store, policy_choice_now(simulation->choice),
                         store_options(simulation->store)->patience_ms);
}

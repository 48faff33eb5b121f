/* SPDX-License-Identifier: Apache-2.0 */
/* What the pods of a simulation hold. */
#include "simulate/simulation_state.h"

#define ROUNDING 1e-6 /* of sums of doubles */

void simulation_occupancy(struct simulation *simulation, struct occupancy *ret_occupancy)
{
    struct ledger *ledger = store_lock(simulation->store);

    occupancy_read(ledger_nodes(ledger), ret_occupancy);
    store_unlock(simulation->store);
}

void simulation_recount(struct simulation *simulation, uint32_t at)
{
    struct node_count *counted = &simulation->counts[at];
    const char *name = simulation->node_names->pdata[at];
    struct occupancy now = {0};

    const struct ledger *ledger = store_lock(simulation->store);
    const struct node *node = ledger_node(ledger, name);
    if (node)
        occupancy_read_node(node, &now);
    store_unlock(simulation->store);
    if (now.overcommitted > counted->overcommitted)
        g_error("node \"%s\": %u cards hold more than they have, %u did before the last pod", name,
                now.overcommitted, counted->overcommitted);
    simulation->used += now.used - counted->used;
    *counted = (struct node_count){now.used, now.overcommitted};
    if (simulation->used > simulation->gpus * (1 + ROUNDING))
        g_error("pods hold %f GPUs of %f", simulation->used, simulation->gpus);
}

void simulation_count(struct simulation *simulation)
{
    struct ledger *ledger = store_lock(simulation->store);

    simulation->counts = g_new0(struct node_count, simulation->node_names->len);
    for (guint i = 0; i < simulation->node_names->len; i++) {
        const struct node *node = ledger_node(ledger, simulation->node_names->pdata[i]);
        struct occupancy one = {0};
        if (node)
            occupancy_read_node(node, &one);
        simulation->counts[i] = (struct node_count){one.used, one.overcommitted};
        simulation->gpus += one.gpus;
        simulation->used += one.used;
    }
    store_unlock(simulation->store);
    simulation->asked = simulation->used;
}

struct simulation_point simulation_look(struct simulation *simulation, double x)
{
    struct occupancy occupancy;

    simulation_occupancy(simulation, &occupancy);
    return (struct simulation_point){.x = x,
                                     .allocated = simulation->used / simulation->gpus,
                                     .part_used = occupancy.part_used / occupancy.gpus,
                                     .untouched = occupancy.untouched / occupancy.gpus};
}

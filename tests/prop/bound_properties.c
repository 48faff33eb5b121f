/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No packing passes the bound: on small clusters every packing is tried. The sizes are the real ones,
 * in thousandths and thousandths of a core; only the bound rounds.
 */
#include "simulate/bound.h"
#include "chance.h"

#include <math.h>
#include <stdlib.h>

#define SORTS 4
#define NODES 2
#define CARDS 3
#define KINDS 2
#define MANY_COPIES 3
#define TOLERANCE 1e-6

struct card_state {
    int32_t core, memory; /* free */
    bool whole;           /* nobody is on it */
};

struct node_state {
    struct card_state cards[CARDS];
    int32_t n, kind;
    int64_t cpu;
};

struct world {
    struct bound_pod pods[SORTS];
    struct room rooms[SORTS][KINDS];
    struct bound_node nodes[NODES];
    struct room parts[NODES][CARDS];
    struct node_state states[NODES];
    size_t n_pods, n_nodes;
    int left[SORTS]; /* pods of each sort that have not been tried */
    double best;
};

/* --- every packing ---------------------------------------------------------------------------- */

static void pack(struct world *world, size_t sort, double value);

static void pack_part(struct world *world, size_t sort, struct node_state *node, double value)
{
    const struct bound_pod *pod = &world->pods[sort];
    const struct room wanted = pod->rooms[node->kind];

    for (int32_t k = 0; k < node->n; k++) {
        struct card_state *card = &node->cards[k];
        const struct card_state before = *card;
        if (card->core < wanted.core || card->memory < wanted.memory)
            continue;
        *card = (struct card_state){card->core - wanted.core, card->memory - wanted.memory, false};
        pack(world, sort, value + pod->value);
        *card = before;
    }
}

static void pack_whole(struct world *world, size_t sort, struct node_state *node, double value)
{
    const struct node_state before = *node;
    const struct bound_pod *pod = &world->pods[sort];
    int32_t taken = 0;

    for (int32_t k = 0; k < node->n && taken < pod->cards; k++) {
        if (!node->cards[k].whole)
            continue;
        node->cards[k] = (struct card_state){0};
        taken++;
    }
    if (taken == pod->cards)
        pack(world, sort, value + pod->value);
    for (int32_t k = 0; k < node->n; k++)
        node->cards[k] = before.cards[k];
}

static void pack(struct world *world, size_t sort, double value)
{
    while (sort < world->n_pods && world->left[sort] == 0)
        sort++;
    world->best = MAX(world->best, value);
    if (sort == world->n_pods)
        return;
    const struct bound_pod *pod = &world->pods[sort];
    world->left[sort]--;
    pack(world, sort, value); /* refused */
    for (size_t i = 0; i < world->n_nodes; i++) {
        struct node_state *node = &world->states[i];
        const struct room wanted = pod->rooms[node->kind];
        if (node->cpu < pod->cpu || (wanted.core == 0 && wanted.memory == 0))
            continue;
        node->cpu -= pod->cpu;
        (pod->cards > 1 ? pack_whole : pack_part)(world, sort, node, value);
        node->cpu += pod->cpu;
    }
    world->left[sort]++;
}

/* --- small clusters --------------------------------------------------------------------------- */

static int32_t some_size(void)
{
    static const int32_t usual[] = {50, 100, 230, 330, 333, 334, 500, 501, 650, 810, 999, 1000};

    return chance_percent(60) ? usual[chance_below(G_N_ELEMENTS(usual))]
                              : (int32_t)chance_between(1, PART_WHOLE);
}

static void make_pod(struct world *world, size_t i, bool paired)
{
    struct bound_pod *pod = &world->pods[i];

    *pod = (struct bound_pod){.cards = chance_percent(25) ? (int32_t)chance_between(2, CARDS) : 1,
                              .cpu = chance_between(0, 4000),
                              .rooms = world->rooms[i]};
    world->left[i] = (int)chance_between(1, MANY_COPIES);
    pod->pods = world->left[i];
    const int32_t core = some_size(), memory = paired ? some_size() : core;
    for (int32_t kind = 0; kind < KINDS; kind++) {
        world->rooms[i][kind] = (struct room){memory, core};
        if (pod->cards > 1)
            world->rooms[i][kind] = (struct room){PART_WHOLE, PART_WHOLE};
        if (chance_percent(15))
            world->rooms[i][kind] = (struct room){0};
    }
    pod->value = pod->cards > 1 ? pod->cards : (double)MAX(core, memory) / PART_WHOLE;
}

static void make_node(struct world *world, size_t i)
{
    struct bound_node *node = &world->nodes[i];
    struct node_state *state = &world->states[i];

    *node = (struct bound_node){.nodes = 1,
                                .kind = (int32_t)chance_below(KINDS),
                                .whole = (int32_t)chance_below(CARDS + 1),
                                .parts = world->parts[i],
                                .cpu = chance_between(0, 9000)};
    *state = (struct node_state){.kind = node->kind, .cpu = node->cpu};
    for (; state->n < node->whole; state->n++)
        state->cards[state->n] = (struct card_state){PART_WHOLE, PART_WHOLE, true};
    while (state->n < CARDS && chance_percent(30)) {
        const struct room room = {(int32_t)chance_between(1, 999), (int32_t)chance_between(1, 999)};
        world->parts[i][node->n_parts++] = room;
        state->cards[state->n++] = (struct card_state){room.core, room.memory, false};
    }
}

static void try_one(double *gap, double *reached)
{
    struct world world = {.n_pods = (size_t)chance_between(1, SORTS),
                          .n_nodes = (size_t)chance_between(1, NODES)};
    const bool paired = chance_percent(30);
    double asked = 0;

    for (size_t i = 0; i < world.n_pods; i++) {
        make_pod(&world, i, paired);
        asked += world.pods[i].pods * world.pods[i].value;
    }
    for (size_t i = 0; i < world.n_nodes; i++)
        make_node(&world, i);
    pack(&world, 0, 0);
    const double bound = bound_of(&(struct bound_problem){
        world.pods, world.n_pods, world.nodes, world.n_nodes, KINDS});
    HOLDS(bound >= world.best - TOLERANCE, "a packing has %f, the bound is %f", world.best, bound);
    HOLDS(bound <= asked + TOLERANCE, "%f were asked for, the bound is %f", asked, bound);
    *gap += bound - world.best;
    *reached += world.best;
}

/* As many nodes as one likes: there the bound is what can be reached. */
static void try_many(void)
{
    const struct room rooms[] = {{810, 810}, {230, 230}, {1000, 1000}};
    const struct bound_pod pods[] = {{1000, 0.81, 1, 0, &rooms[0]}, {80, 0.23, 1, 0, &rooms[1]},
                                     {30, 2, 2, 0, &rooms[2]}};
    const struct bound_node node = {100, 0, 3, 0, NULL, INT64_MAX};
    /* 80 pods of 0.23 fill 20 cards; three cards hold a pair and another, or no pair. */
    const double expected = 30 * 2 + 20 * 4 * 0.23 + (300 - 60 - 20) * 0.81;
    const double bound = bound_of(&(struct bound_problem){pods, 3, &node, 1, 1});

    HOLDS(fabs(bound - expected) < 0.01, "%f can be reached, the bound is %f", expected, bound);
}

int main(void)
{
    double gap = 0, reached = 0;
    unsigned n = 0;

    chance_init("no packing passes the bound", 3000);
    try_many();
    for (; chance_next_event(); n++)
        try_one(&gap, &reached);
    HOLDS(gap <= 0.1 * reached, "the bounds are %f above what %f is reached of", gap, reached);
    g_print("# %u clusters, the bounds are %.2f %% above the best packings\n", n,
            reached > 0 ? 100 * gap / reached : 0);
    return EXIT_SUCCESS;
}

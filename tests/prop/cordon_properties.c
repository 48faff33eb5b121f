/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cordon is of a card, not of a place. Cards of a node are cordoned and uncordoned by their index of the
 * moment, while the node lists them in another order, lists fewer, or lists them again.
 *
 * The oracle has the cards themselves. Held: no pod is given a cordoned card; where the node names UUIDs,
 * each card that is not cordoned is given. Without UUIDs nothing tells cards of one number apart, so there
 * the same number of cards means the same cards in the same order.
 */
#include "chance.h"

#include "core/ledger.h"
#include "dialect/marks/cordoned_cards.h"

#include <stdio.h>
#include <string.h>

#define CARDS 6

struct world {
    bool named;             /* the node lists UUIDs */
    uint32_t listed[CARDS]; /* the cards, by index */
    int n_listed;
    int cordoned[CARDS]; /* among so many */
    char *annotation;
};

static unsigned n_granted, n_refused, n_gone, n_moved;

static struct node *read_node(const struct world *world, struct ledger *book,
                              struct topology *topology)
{
    g_autoptr(GString) cards = g_string_new(NULL);
    g_autofree char *count = g_strdup_printf("%d", world->n_listed);
    g_autofree char *amount = g_strdup_printf("%d", world->n_listed * 10);
    const struct string_pair capacity[] = {
        {world->named ? "nvidia.com/gpu" : "aliyun.com/gpu-mem", amount},
        {"aliyun.com/gpu-count", count}};
    struct string_pair annotations[2];
    struct node_view view = {.name = "n", .annotations = {annotations, 0}};
    const struct dialect_options options = {0};

    for (int i = 0; i < world->n_listed; i++)
        g_string_append_printf(cards,
                               "GPU-%u,10,16000,100,T4,0,true,%d,hami-core:", world->listed[i], i);
    if (world->named)
        annotations[view.annotations.n++] =
            (struct string_pair){"hami.io/node-nvidia-register", cards->str};
    if (world->annotation)
        annotations[view.annotations.n++] =
            (struct string_pair){CORDONED_CARDS_KEY, world->annotation};
    view.capacity = view.allocatable = (struct string_pairs){capacity, world->named ? 1 : 2};
    HOLDS(dialect_read_topology(&view, &options, topology, NULL, NULL), "the node is not read");
    HOLDS(topology->n_cards == world->n_listed, "%d cards", topology->n_cards);
    return ledger_set_topology(book, "n", topology);
}

/* Whether a pod that fits on any card is given this one. */
static bool is_given(const struct world *world, const struct node *node, int card)
{
    const struct string_pair limits[] = {
        {world->named ? "nvidia.com/gpu" : "aliyun.com/gpu-mem", "1"},
        {"nvidia.com/gpumem", "1000"}};
    const struct container_view container = {.name = "c", .limits = {limits, world->named ? 2 : 1}};
    const struct pod_view pod = {
        .ns = "ns", .name = "p", .uid = "p", .containers = &container, .n_containers = 1};
    const struct dialect_options options = {0};
    g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
    struct placement placement;

    return placement_find(node, request, policies, NULL, card, &placement) == REASON_NONE;
}

static void judge(const struct world *world)
{
    g_autoptr(topology) topology = topology_new();
    struct ledger *book = ledger_new();
    const struct node *node = read_node(world, book, topology);

    for (int i = 0; i < world->n_listed; i++) {
        const bool given = is_given(world, node, i), closed = world->cordoned[world->listed[i]] > 0;
        HOLDS(!given || !closed, "card %d, which is GPU-%u, by '%s'", i, world->listed[i],
              world->annotation ? world->annotation : "");
        HOLDS(given || closed || !world->named, "GPU-%u is kept by '%s'", world->listed[i],
              world->annotation ? world->annotation : "");
        n_granted += given;
        n_refused += !given;
    }
    ledger_free(book);
}

static void edit(struct world *world, bool open)
{
    const int card = (int)chance_below((uint32_t)world->n_listed);
    int *cordoned = &world->cordoned[world->listed[card]];

    /* Else a cordon of this index, but of another card, would be taken back. */
    if (open && (world->named ? *cordoned == 0 : *cordoned != world->n_listed))
        return;
    g_autoptr(topology) topology = topology_new();
    struct ledger *book = ledger_new();
    g_autofree char *before = world->annotation, *uuid = NULL;
    read_node(world, book, topology);
    const struct cordon_edit change = {before, topology, card, open};
    world->annotation = cordoned_cards_edit(&change, &uuid);
    *cordoned = open ? 0 : world->n_listed;
    ledger_free(book);
}

static void cordon(void *data)
{
    edit(data, false);
}

static void uncordon(void *data)
{
    edit(data, true);
}

static void list_again(void *data)
{
    /* Without UUIDs, cards go in this order. */
    static const uint32_t stays[CARDS] = {3, 0, 5, 2, 4, 1};
    struct world *world = data;
    const uint32_t n = 1 + chance_below(CARDS);
    uint32_t order[CARDS];

    chance_order(order, CARDS);
    world->n_listed = 0;
    for (uint32_t i = 0; i < CARDS; i++) {
        const uint32_t card = world->named ? order[i] : i;
        if (world->named ? i < n : stays[i] < n) {
            n_moved += world->n_listed != (int)card;
            world->listed[world->n_listed++] = card;
        } else {
            n_gone += world->cordoned[card] > 0;
        }
    }
}

int main(void)
{
    static const struct chance_action actions[] = {
        {"cordon", 3, cordon}, {"uncordon", 2, uncordon}, {"list again", 3, list_again}, {NULL}};

    chance_init("cordon", 20000);
    for (int named = 0; named < 2; named++) {
        struct world world = {.named = named};
        list_again(&world);
        for (unsigned i = 0; i < chance_events() / 2 && chance_next_event(); i++) {
            chance_act(actions, &world);
            judge(&world);
        }
        g_free(world.annotation);
    }
    printf("%u granted, %u refused, %u cordoned cards gone, %u moved\n", n_granted, n_refused,
           n_gone, n_moved);
    HOLDS(n_granted > 0 && n_refused > 0 && n_gone > 0 && n_moved > 0, "too little happened");
    return 0;
}

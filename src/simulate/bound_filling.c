/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two knapsacks, one in the other.
 *
 *   f(a, b, c) = the most that pods weigh which share a card with so much room of compute, a, and of
 *                memory, b, and take no more than so much CPU, c
 *   h(0, c) = 0
 *   h(j, c) = the largest of  h(j-1, c-x) + f(card, x)           the j-th card is shared
 *                             h(j-k, c-p) + w                    k cards go to one pod whole
 *
 * in steps: what pods take is rounded down, as is what nodes have. Where no two pods differ in which
 * they want more of, compute or memory, the larger is all that counts.
 */
#include "simulate/bound_filling.h"

#include <math.h>
#include <string.h>

#define CPU_STEPS 2048
#define CELLS_MAX 262144 /* of f */
#define PART_STEPS 200  /* of a card, at most */
#define BOUND_PAIR_STEP 20 /* thousandths, where compute and memory both count */
#define EPSILON 1e-9

/* What one pod takes of a card of the kind at hand, in steps. */
struct take {
    double weight;
    int32_t a, b, c;
    uint32_t pod;
};

struct fillings {
    const struct bound_problem *problem;
    bool paired;
    int32_t part_step; /* thousandths of a card */
    int32_t a, b, c;   /* steps of a whole card and of the largest node's CPU */
    int64_t cpu_step;
    GArray *shared, *whole; /* struct take, those that weigh something */
    double *f, *h;
    size_t n_h;
};

static int32_t divisor(int32_t a, int32_t b)
{
    while (b > 0) {
        const int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool is_nothing(struct room room)
{
    return room.core == 0 && room.memory == 0;
}

/* Whether some pods want more compute and others more memory; else sets the step for the larger. */
static void set_part_step(struct fillings *fillings)
{
    const struct bound_problem *problem = fillings->problem;
    bool more_core = false, more_memory = false;
    int32_t common = PART_WHOLE;

    for (size_t i = 0; i < problem->n_pods; i++) {
        for (int32_t k = 0; k < problem->n_kinds; k++) {
            const struct room room = problem->pods[i].rooms[k];
            more_core |= room.core > room.memory;
            more_memory |= room.memory > room.core;
            common = divisor(common, MAX(room.core, room.memory));
        }
    }
    fillings->paired = more_core && more_memory;
    fillings->part_step = fillings->paired ? BOUND_PAIR_STEP : MAX(common, PART_WHOLE / PART_STEPS);
    fillings->a = PART_WHOLE / fillings->part_step;
    fillings->b = fillings->paired ? fillings->a : 0;
}

/* Nodes of which nothing is known may have any CPU: then it counts nowhere. */
static void set_cpu_step(struct fillings *fillings)
{
    const struct bound_problem *problem = fillings->problem;
    const int32_t steps =
        MIN(CPU_STEPS, CELLS_MAX / ((fillings->a + 1) * (fillings->b + 1)) - 1);
    int64_t most = 0;

    for (size_t i = 0; i < problem->n_nodes; i++)
        most = MAX(most, problem->nodes[i].cpu);
    fillings->cpu_step = most == INT64_MAX ? INT64_MAX : MAX((most + steps - 1) / steps, 1);
    fillings->c = (int32_t)(most / fillings->cpu_step);
    if (most == INT64_MAX)
        fillings->c = 0;
}

struct fillings *fillings_new(const struct bound_problem *problem)
{
    struct fillings *fillings = g_new0(struct fillings, 1);
    int32_t cards = 0;

    fillings->problem = problem;
    set_part_step(fillings);
    set_cpu_step(fillings);
    for (size_t i = 0; i < problem->n_nodes; i++)
        cards = MAX(cards, problem->nodes[i].whole + (int32_t)problem->nodes[i].n_parts);
    fillings->shared = g_array_new(FALSE, FALSE, sizeof(struct take));
    fillings->whole = g_array_new(FALSE, FALSE, sizeof(struct take));
    fillings->f = g_new(double, (size_t)(fillings->a + 1) * (size_t)(fillings->b + 1) *
                                    (size_t)(fillings->c + 1));
    fillings->h = g_new(double, (size_t)(cards + 1) * (size_t)(fillings->c + 1));
    return fillings;
}

void fillings_free(struct fillings *fillings)
{
    g_array_unref(fillings->shared);
    g_array_unref(fillings->whole);
    g_free(fillings->f);
    g_free(fillings->h);
    g_free(fillings);
}

static struct take take_of(const struct fillings *fillings, size_t i, struct room room)
{
    const struct bound_pod *pod = &fillings->problem->pods[i];
    struct take take = {.c = (int32_t)(pod->cpu / fillings->cpu_step), .pod = (uint32_t)i};

    take.a = (fillings->paired ? room.core : MAX(room.core, room.memory)) / fillings->part_step;
    take.b = fillings->paired ? room.memory / fillings->part_step : 0;
    return take;
}

bool fillings_takes_nothing(const struct fillings *fillings, size_t pod)
{
    const struct bound_pod *of = &fillings->problem->pods[pod];

    for (int32_t k = 0; k < fillings->problem->n_kinds && of->cards == 1; k++) {
        const struct take take = take_of(fillings, pod, of->rooms[k]);
        if (!is_nothing(of->rooms[k]) && take.a == 0 && take.b == 0 && take.c == 0)
            return true;
    }
    return false;
}

/* --- one card ------------------------------------------------------------------------------- */

static double *cell(const struct fillings *fillings, int32_t a, int32_t b)
{
    return fillings->f + (size_t)(a * (fillings->b + 1) + b) * (size_t)(fillings->c + 1);
}

/* One more sort of pods may be on the card, as often as it fits. */
static void allow(struct fillings *fillings, const struct take *take)
{
    for (int32_t a = take->a; a <= fillings->a; a++) {
        for (int32_t b = take->b; b <= fillings->b; b++) {
            double *to = cell(fillings, a, b);
            const double *from = cell(fillings, a - take->a, b - take->b);
            for (int32_t c = take->c; c <= fillings->c; c++) {
                const double weight = from[c - take->c] + take->weight;
                to[c] = weight > to[c] ? weight : to[c];
            }
        }
    }
}

void fillings_weigh(struct fillings *fillings, int32_t kind, const double *weights)
{
    const struct bound_problem *problem = fillings->problem;

    g_array_set_size(fillings->shared, 0);
    g_array_set_size(fillings->whole, 0);
    memset(fillings->f, 0, (size_t)(fillings->a + 1) * (size_t)(fillings->b + 1) *
                               (size_t)(fillings->c + 1) * sizeof *fillings->f);
    for (size_t i = 0; i < problem->n_pods; i++) {
        const struct room room = problem->pods[i].rooms[kind];
        struct take take = take_of(fillings, i, room);
        if (is_nothing(room) || weights[i] <= EPSILON || fillings_takes_nothing(fillings, i))
            continue;
        take.weight = weights[i];
        g_array_append_val(problem->pods[i].cards > 1 ? fillings->whole : fillings->shared, take);
        if (problem->pods[i].cards == 1)
            allow(fillings, &take);
    }
}

static void note(GArray *parts, uint32_t pod)
{
    for (guint i = 0; i < parts->len; i++) {
        struct filling_part *part = &g_array_index(parts, struct filling_part, i);
        if (part->pod == pod) {
            part->times++;
            return;
        }
    }
    g_array_append_val(parts, ((struct filling_part){pod, 1}));
}

/* Which pods f(a, b, c) is of. */
static void trace_card(const struct fillings *fillings, int32_t a, int32_t b, int32_t c,
                       GArray *parts)
{
    while (cell(fillings, a, b)[c] > EPSILON) {
        const struct take *best = NULL;
        double most = 0;
        for (guint i = 0; i < fillings->shared->len; i++) {
            const struct take *take = &g_array_index(fillings->shared, struct take, i);
            if (take->a > a || take->b > b || take->c > c)
                continue;
            const double weight =
                cell(fillings, a - take->a, b - take->b)[c - take->c] + take->weight;
            if (weight > most) {
                most = weight;
                best = take;
            }
        }
        if (!best || most < cell(fillings, a, b)[c] - EPSILON)
            return;
        note(parts, best->pod);
        a -= best->a;
        b -= best->b;
        c -= best->c;
    }
}

/* --- one node ------------------------------------------------------------------------------- */

/* The room of the node's j-th card, from 1 on; those that are free come first. */
static struct take room_of(const struct fillings *fillings, const struct bound_node *node, int32_t j)
{
    if (j <= node->whole)
        return (struct take){.a = fillings->a, .b = fillings->b};
    const struct room room = node->parts[j - node->whole - 1];
    if (fillings->paired)
        return (struct take){.a = room.core / fillings->part_step,
                             .b = room.memory / fillings->part_step};
    return (struct take){.a = MAX(room.core, room.memory) / fillings->part_step};
}

static void share_card(const double *card, int32_t cpu, const double *before, double *after)
{
    for (int32_t x = 0; x <= cpu; x++) {
        if (x > 0 && card[x] <= card[x - 1])
            continue; /* the same for less */
        for (int32_t c = x; c <= cpu; c++) {
            const double weight = before[c - x] + card[x];
            after[c] = weight > after[c] ? weight : after[c];
        }
    }
}

static void give_whole(const struct fillings *fillings, const struct take *take, int32_t cpu,
                       int32_t j, double *h)
{
    const size_t row = (size_t)fillings->c + 1;
    const int32_t cards = fillings->problem->pods[take->pod].cards;

    for (int32_t c = take->c; cards <= j && c <= cpu; c++) {
        const double weight = h[(size_t)(j - cards) * row + (size_t)(c - take->c)] + take->weight;
        double *to = &h[(size_t)j * row + (size_t)c];
        *to = weight > *to ? weight : *to;
    }
}

/* Takes one step back from h(j, c); false: nothing explains it. */
static bool step_back(const struct fillings *fillings, const struct bound_node *node, int32_t *j,
                      int32_t *c, GArray *parts)
{
    const size_t row = (size_t)fillings->c + 1;
    const double here = fillings->h[(size_t)*j * row + (size_t)*c] - EPSILON;
    const struct take room = room_of(fillings, node, *j);
    const double *card = cell(fillings, room.a, room.b);

    for (guint i = 0; i < fillings->whole->len && *j <= node->whole; i++) {
        const struct take *take = &g_array_index(fillings->whole, struct take, i);
        const int32_t cards = fillings->problem->pods[take->pod].cards;
        if (cards > *j || take->c > *c ||
            fillings->h[(size_t)(*j - cards) * row + (size_t)(*c - take->c)] + take->weight < here)
            continue;
        note(parts, take->pod);
        *j -= cards;
        *c -= take->c;
        return true;
    }
    for (int32_t x = 0; x <= *c; x++) {
        if (fillings->h[(size_t)(*j - 1) * row + (size_t)(*c - x)] + card[x] < here)
            continue;
        trace_card(fillings, room.a, room.b, x, parts);
        --*j;
        *c -= x;
        return true;
    }
    return false;
}

double fillings_best(struct fillings *fillings, size_t node_index, GArray *ret_parts)
{
    const struct bound_node *node = &fillings->problem->nodes[node_index];
    const int32_t cards = node->whole + (int32_t)node->n_parts;
    const int32_t cpu = node->cpu == INT64_MAX ? 0 : (int32_t)(node->cpu / fillings->cpu_step);
    const size_t row = (size_t)fillings->c + 1;

    memset(fillings->h, 0, (size_t)(cards + 1) * row * sizeof *fillings->h);
    for (int32_t j = 1; j <= cards; j++) {
        const struct take room = room_of(fillings, node, j);
        share_card(cell(fillings, room.a, room.b), cpu, fillings->h + (size_t)(j - 1) * row,
                   fillings->h + (size_t)j * row);
        for (guint i = 0; i < fillings->whole->len && j <= node->whole; i++)
            give_whole(fillings, &g_array_index(fillings->whole, struct take, i), cpu, j,
                       fillings->h);
    }
    g_array_set_size(ret_parts, 0);
    int32_t j = cards, c = cpu;
    while (j > 0 && step_back(fillings, node, &j, &c, ret_parts))
        ;
    return fillings->h[(size_t)cards * row + (size_t)cpu];
}

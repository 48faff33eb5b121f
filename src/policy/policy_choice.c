/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_choice.h"

#include <gpuledger/placement.h>

static const char *const names[POLICY_CHOICE_N] = {"oc", "binpack", "fgd", "first-fit"};

/* Whether the cluster is almost full or more than full nobody knows: both are looked at. */
static const double loads[] = {0.95, 1.1};

/* Arrivals of each load in a look. */
#define SEEDS 3

/* Lifetimes that a run counts: the fewer the more pods there are. */
#define ARRIVALS_COUNTED 4000.0
#define LIFETIMES_MIN 3.0
#define LIFETIMES_MAX 20.0

/* Who is so many points behind after one run of each load is out of the question in this look. */
#define BEHIND 0.75

struct policy_choice {
    struct policy_figure figures[POLICY_CHOICE_N];
    size_t now, ahead;
    unsigned in_row; /* looks in which `ahead` was */
    unsigned looks;
};

/* A look under way. */
struct look {
    struct lookahead *lookahead;
    double sums[POLICY_CHOICE_N]; /* by policy, of the runs so far, in percent */
    bool out[POLICY_CHOICE_N];
    double early; /* the sum of the policy in use when the worst were left out */
    unsigned runs;
};

const struct policy *policy_begin(const struct policy *policy)
{
    return policy == &policy_auto ? policy_find(names[0]) : policy;
}

struct policy_choice *policy_choice_new(void)
{
    struct policy_choice *choice = g_new0(struct policy_choice, 1);

    for (size_t i = 0; i < POLICY_CHOICE_N; i++)
        choice->figures[i].policy = policy_find(names[i]);
    return choice;
}

void policy_choice_free(struct policy_choice *choice)
{
    g_free(choice);
}

const struct policy *policy_choice_now(const struct policy_choice *choice)
{
    return choice->figures[choice->now].policy;
}

const struct policy_figure *policy_choice_figures(const struct policy_choice *choice)
{
    return choice->figures;
}

unsigned policy_choice_looks(const struct policy_choice *choice)
{
    return choice->looks;
}

/* One run of each policy that is not out, on the same arrivals. False: cancelled. */
static bool run_each(const struct policy_choice *choice, struct look *look, double load,
                     uint32_t seed, const gint *cancelled)
{
    const double lifetimes =
        CLAMP(ARRIVALS_COUNTED / lookahead_arrivals(look->lookahead), LIFETIMES_MIN, LIFETIMES_MAX);

    for (size_t i = 0; i < POLICY_CHOICE_N; i++) {
        if (look->out[i])
            continue;
        const double allocated = lookahead_run(
            look->lookahead, &(struct lookahead_options){.policy = choice->figures[i].policy,
                                                         .seed = seed,
                                                         .load = load,
                                                         .lifetimes = lifetimes,
                                                         .cancelled = cancelled});
        if (allocated < 0)
            return false;
        look->sums[i] += 100 * allocated;
    }
    look->runs++;
    return true;
}

static void leave_out_the_worst(const struct policy_choice *choice, struct look *look)
{
    look->early = look->sums[choice->now];
    for (size_t i = 0; i < POLICY_CHOICE_N; i++)
        look->out[i] = look->sums[i] < look->sums[choice->now] - BEHIND * look->runs;
}

/* Other arrivals in each look, so that the looks of a row agree by more than chance. */
static bool run_all(const struct policy_choice *choice, struct look *look, const gint *cancelled)
{
    for (uint32_t i = 0; i < SEEDS; i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(loads); k++) {
            if (!run_each(choice, look, loads[k], choice->looks * SEEDS + i, cancelled))
                return false;
        }
        if (i == 0)
            leave_out_the_worst(choice, look);
    }
    return true;
}

/* Returns the one that allocates most. */
static size_t set_figures(struct policy_choice *choice, const struct look *look)
{
    size_t best = choice->now;

    for (size_t i = 0; i < POLICY_CHOICE_N; i++) {
        struct policy_figure *figure = &choice->figures[i];
        const unsigned runs = look->out[i] ? G_N_ELEMENTS(loads) : look->runs;
        figure->allocated = look->sums[i] / runs;
        figure->gain =
            figure->allocated - (look->out[i] ? look->early : look->sums[choice->now]) / runs;
        if (!look->out[i] && figure->gain > choice->figures[best].gain)
            best = i;
    }
    return best;
}

static bool go_over(struct policy_choice *choice, size_t best)
{
    const bool ahead = best != choice->now && choice->figures[best].gain >= POLICY_CHOICE_MARGIN;

    choice->in_row = !ahead ? 0 : best == choice->ahead ? choice->in_row + 1 : 1;
    choice->ahead = best;
    if (choice->in_row < POLICY_CHOICE_IN_ROW)
        return false;
    choice->in_row = 0;
    choice->now = best;
    return true;
}

bool policy_choice_look(struct policy_choice *choice, struct ledger *ledger,
                        const struct demand *demand, const gint *cancelled)
{
    g_autoptr(lookahead) lookahead = lookahead_new(ledger, demand);
    struct look look = {.lookahead = lookahead};

    if (!lookahead || !run_all(choice, &look, cancelled))
        return false;
    const size_t best = set_figures(choice, &look);
    choice->looks++;
    return go_over(choice, best);
}

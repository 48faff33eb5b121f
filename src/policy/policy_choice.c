/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy_choice.h"

#include <gpuledger/placement.h>
#include <math.h>

static const char *const names[POLICY_CHOICE_N] = {"oc", "binpack", "fgd", "first-fit"};

/* Whether the cluster is almost full or more than full nobody knows: both are looked at. */
static const double loads[] = {0.95, 1.1};

#define LOADS G_N_ELEMENTS(loads)

/* Whoever is refused in neither of two runs holds the same in both, so a load at which two policies are
 * no further apart, in points, says nothing of which is better when pods are refused. */
#define SAME 0.01

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
    size_t now;
    unsigned looks;
    unsigned since, taken; /* looks since `now` is in use, and by which it came to be */
};

/* A look under way. */
struct look {
    struct lookahead *lookahead;
    double sums[LOADS][POLICY_CHOICE_N]; /* by policy, of the runs so far, in percent */
    bool out[POLICY_CHOICE_N];
    double early[LOADS]; /* the sums of the policy in use when the worst were left out */
    unsigned runs;       /* of each load */
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

unsigned policy_choice_looks_taken(const struct policy_choice *choice)
{
    return choice->taken;
}

/* One run of each policy that is not out, on the same arrivals. False: cancelled. */
static bool run_each(const struct policy_choice *choice, struct look *look, size_t load,
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
                                                         .load = loads[load],
                                                         .lifetimes = lifetimes,
                                                         .cancelled = cancelled});
        if (allocated < 0)
            return false;
        look->sums[load][i] += 100 * allocated;
    }
    return true;
}

static double sum_of(const struct look *look, size_t policy)
{
    double sum = 0;

    for (size_t k = 0; k < LOADS; k++)
        sum += look->sums[k][policy];
    return sum;
}

static void leave_out_the_worst(const struct policy_choice *choice, struct look *look)
{
    for (size_t k = 0; k < LOADS; k++)
        look->early[k] = look->sums[k][choice->now];
    for (size_t i = 0; i < POLICY_CHOICE_N; i++)
        look->out[i] = sum_of(look, i) < sum_of(look, choice->now) - BEHIND * LOADS;
}

/* Other arrivals in each look, so that looks that agree do so by more than chance. */
static bool run_all(const struct policy_choice *choice, struct look *look, const gint *cancelled)
{
    for (uint32_t i = 0; i < SEEDS; i++) {
        for (size_t k = 0; k < LOADS; k++) {
            if (!run_each(choice, look, k, choice->looks * SEEDS + i, cancelled))
                return false;
        }
        look->runs++;
        if (i == 0)
            leave_out_the_worst(choice, look);
    }
    return true;
}

/* Over the policy in use, the mean of the loads that tell the two apart. */
static double gain_of(const struct policy_choice *choice, const struct look *look, size_t policy)
{
    double sum = 0;
    unsigned n = 0;

    for (size_t k = 0; k < LOADS; k++) {
        const double gain = look->out[policy]
                                ? look->sums[k][policy] - look->early[k]
                                : (look->sums[k][policy] - look->sums[k][choice->now]) / look->runs;
        sum += gain;
        n += fabs(gain) > SAME;
    }
    return n > 0 ? sum / n : 0;
}

static void set_allocated(struct policy_choice *choice, const struct look *look, double *ret_gains)
{
    for (size_t i = 0; i < POLICY_CHOICE_N; i++) {
        const unsigned runs = look->out[i] ? 1 : look->runs;
        choice->figures[i].allocated = sum_of(look, i) / (double)(runs * LOADS);
        ret_gains[i] = gain_of(choice, look, i);
    }
}

/* What earlier looks said was about another policy in use. */
static void go_over(struct policy_choice *choice, size_t to)
{
    choice->now = to;
    choice->taken = choice->since;
    choice->since = 0;
    for (size_t i = 0; i < POLICY_CHOICE_N; i++)
        choice->figures[i].lead = 0;
}

bool policy_choice_weigh(struct policy_choice *choice, const double *gains)
{
    size_t best = choice->now;

    choice->looks++;
    choice->since++;
    for (size_t i = 0; i < POLICY_CHOICE_N; i++) {
        struct policy_figure *figure = &choice->figures[i];
        figure->gain = gains[i];
        if (i == choice->now)
            continue;
        const double counts = MIN(figure->gain - POLICY_CHOICE_ALLOWANCE, POLICY_CHOICE_LOOK_MAX);
        figure->lead = MAX(figure->lead + counts, 0);
        if (figure->lead > choice->figures[best].lead)
            best = i;
    }
    if (choice->figures[best].lead < POLICY_CHOICE_LEAD)
        return false;
    go_over(choice, best);
    return true;
}

bool policy_choice_look(struct policy_choice *choice, struct ledger *ledger,
                        const struct demand *demand, const gint *cancelled)
{
    g_autoptr(lookahead) lookahead = lookahead_new(ledger, demand);
    struct look look = {.lookahead = lookahead};
    double gains[POLICY_CHOICE_N];

    if (!lookahead || !run_all(choice, &look, cancelled))
        return false;
    set_allocated(choice, &look, gains);
    return policy_choice_weigh(choice, gains);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces lend each other cards and take them back, while pods come, go and are evicted, and replicas take
 * over.
 *
 * The oracle adds up what pods ask for, and knows nothing else: whoever is evicted is of a namespace that has
 * as much above its min, those not counted that end already; when nothing happens from outside, evictions
 * come to an end, and nobody waits who could have room by the rule, as all sets of pods of all cards tell.
 */
#include "chance.h"
#include "lending_cluster.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define SPACES 4
#define QUIET_STEPS 120

static int64_t mins[LENDING_SPACES]; /* units; -1: no quota */

/* --- the oracle ----------------------------------------------------------------------------------- */

static void judge_eviction(const struct lending_pod *pod)
{
    HOLDS(pod->stage == STAGE_HELD, "p%d ends already", (int)(pod - lending.pods));
    HOLDS(!pod->opts_out, "p%d has asked to stay", (int)(pod - lending.pods));
    HOLDS(mins[pod->space] >= 0, "s%d has no quota", pod->space);
    HOLDS(lending_held(pod->space, false) - pod->units >= mins[pod->space],
          "s%d has %ld of %ld and loses %d", pod->space, (long)lending_held(pod->space, false),
          (long)mins[pod->space], pod->units);
}

static void judge_taking(const struct lending_pod *pod, const struct lending_pod *claimant)
{
    const int64_t has = lending_held(claimant->space, true);

    HOLDS(has + claimant->units <= mins[claimant->space], "s%d takes, and has %ld of %ld",
          claimant->space, (long)has, (long)mins[claimant->space]);
}

/* A namespace is promised no more than its min: what it holds, and all for whom room is kept. */
static void judge_claim(const struct lending_pod *claimant)
{
    const int space = claimant->space;
    const int64_t sum = lending_held(space, true) + lending_promised(space);

    HOLDS(sum <= mins[space], "s%d is promised %ld of %ld", space, (long)sum, (long)mins[space]);
}

/* Whether the pods of one card that may end, as many as their namespaces have borrowed, make so much room. */
static bool could_make_room(int node, int card, int space, int units)
{
    int on[LENDING_CARD + 1], n = 0;
    int64_t left = LENDING_CARD;

    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[i].node != node || lending.pods[i].card != card)
            continue;
        left -= lending.pods[i].stage == STAGE_HELD || lending.pods[i].stage == STAGE_ENDS
                    ? lending.pods[i].units
                    : 0;
        if (lending.pods[i].stage == STAGE_HELD && lending.pods[i].space != space &&
            mins[lending.pods[i].space] >= 0 && !lending.pods[i].opts_out)
            on[n++] = i;
    }
    for (unsigned set = 0; set < 1u << n; set++) {
        int64_t freed = 0, of[LENDING_SPACES] = {0};
        bool allowed = true;
        for (int i = 0; i < n; i++) {
            if (!(set >> i & 1))
                continue;
            freed += lending.pods[on[i]].units;
            of[lending.pods[on[i]].space] += lending.pods[on[i]].units;
        }
        for (int i = 0; i < lending.n_spaces; i++)
            allowed &= of[i] == 0 || lending_held(i, false) - of[i] >= mins[i];
        if (allowed && left + freed >= units)
            return true;
    }
    return false;
}

static void judge_waiting(void)
{
    for (int i = 0; i < LENDING_PODS; i++) {
        const struct lending_pod *pod = &lending.pods[i];
        if (pod->stage != STAGE_WAITS || mins[pod->space] <= 0 ||
            lending_held(pod->space, true) + pod->units > mins[pod->space])
            continue;
        for (int node = 0; node < lending.n_nodes; node++) {
            for (int card = 0; card < lending.n_cards; card++)
                HOLDS(!could_make_room(node, card, pod->space, pod->units),
                      "p%d of s%d (%d units) waits, n%d/%d could have room", i, pod->space,
                      pod->units, node, card);
        }
    }
}

static const struct lending_judge judge = {
    .eviction = judge_eviction,
    .taking = judge_taking,
    .claim = judge_claim,
    .rest = judge_waiting,
};

/* --- quotas ------------------------------------------------------------------------------------------- */

static void set_min(int space, int64_t units)
{
    g_autofree char *ns = g_strdup_printf("s%d", space);
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT "00m", units);
    struct resource_quota_view view = {.ns = ns, .name = "q", .elastic = true};
    const struct string_pair pairs[] = {{"gpuledger.io/gpus", text}};

    mins[space] = units;
    if (units < 0) {
        store_delete_resource_quota(lending.store, &view);
        return;
    }
    view.min = (struct string_pairs){pairs, 1};
    store_apply_resource_quota(lending.store, &view);
}

static void begin(int spaces, int nodes, int cards)
{
    lending.judge = &judge;
    lending_begin(spaces, nodes, cards);
    for (int i = 0; i < LENDING_SPACES; i++)
        mins[i] = -1;
}

/* --- what was asked for --------------------------------------------------------------------------------- */

/* A is sure of 60 cards and B of 40; A has all 100 when B submits 40. */
static void check_hundred_cards(void)
{
    begin(2, 13, 8);
    set_min(0, 600);
    set_min(1, 400);
    for (int i = 0; i < 100; i++)
        lending_create(0, LENDING_CARD, 0, true);
    for (int card = 4; card < 8; card++) { /* 13 nodes have 104 cards: four are somebody else's */
        const int number = lending_create(3, LENDING_CARD, 0, false);
        lending.pods[number].stage = STAGE_HELD;
        lending.pods[number].node = 12;
        lending.pods[number].card = card;
        lending_tell(number);
    }
    lending_step();
    HOLDS(lending_count(0, STAGE_HELD) == 100, "A has %d", lending_count(0, STAGE_HELD));
    lending.moment.now_ns += INT64_C(3600000000000);
    for (int i = 0; i < 40; i++)
        lending_create(1, LENDING_CARD, 0, true);
    for (int i = 0; i < QUIET_STEPS; i++)
        lending_step();
    HOLDS(lending.evicted_units[0] == 400 && lending.evicted_units[1] == 0, "A gave %ld, B %ld",
          (long)lending.evicted_units[0], (long)lending.evicted_units[1]);
    HOLDS(lending_count(0, STAGE_HELD) == 60 && lending_count(1, STAGE_HELD) == 40,
          "A has %d, B %d", lending_count(0, STAGE_HELD), lending_count(1, STAGE_HELD));
    printf("# A of 100 cards gave back %ld tenths to B; A has %d cards, B %d\n",
           (long)lending.evicted_units[0], lending_count(0, STAGE_HELD),
           lending_count(1, STAGE_HELD));
}

/* A claim of 0.2 cards ends 0.2 cards: the youngest of lowest priority among equals. */
static void check_a_fifth(void)
{
    begin(2, 1, 2);
    set_min(0, 10);
    set_min(1, 10);
    const int high = lending_create(0, 2, 5, false), old = lending_create(0, 2, 0, false);
    lending_step();
    const int young = lending_create(0, 2, 0, false);
    for (int i = 0; i < 7; i++)
        lending_create(0, 2, 3, false);
    lending_step();
    HOLDS(lending_count(0, STAGE_HELD) == 10, "A has %d", lending_count(0, STAGE_HELD));
    lending_create(1, 2, 0, false);
    for (int i = 0; i < 20; i++)
        lending_step();
    HOLDS(lending_count(1, STAGE_HELD) == 1 && lending.evicted_units[0] == 2,
          "B has %d, A gave %ld", lending_count(1, STAGE_HELD), (long)lending.evicted_units[0]);
    HOLDS(lending.pods[high].stage == STAGE_HELD && lending.pods[old].stage == STAGE_HELD &&
              lending.pods[young].stage == STAGE_GONE,
          "not the youngest of lowest priority");
    printf("# a claim of 2 tenths ended %ld tenths\n", (long)lending.evicted_units[0]);
}

/* Three cards for a group of three; and of four that need four, for which its namespace is not sure of
 * enough, nobody ends. Who is of a group that is not whole is not bound here. */
static void check_group(int members, const char *needs, int64_t gives)
{
    lending.group_min = needs;
    begin(2, 1, 4);
    set_min(0, 10);
    set_min(1, 30);
    for (int i = 0; i < 4; i++)
        lending_create(0, LENDING_CARD, 0, false);
    lending_step();
    HOLDS(lending_count(0, STAGE_HELD) == 4, "A has %d", lending_count(0, STAGE_HELD));
    for (int i = 0; i < members; i++) {
        const int number = lending_create(1, LENDING_CARD, 0, false);
        lending.pods[number].grouped = true;
        lending_tell(number);
    }
    for (int i = 0; i < 30; i++)
        lending_step();
    HOLDS(lending.evicted_units[0] == gives * LENDING_CARD, "A gave %ld",
          (long)lending.evicted_units[0]);
    HOLDS(lending_count(1, STAGE_HELD) == gives, "B has %d", lending_count(1, STAGE_HELD));
    printf("# a group of %d that needs %s got %ld cards\n", members, needs, (long)gives);
}

/* --- rounds ---------------------------------------------------------------------------------------------- */

static void change_quota(void *data)
{
    set_min((int)chance_below((uint32_t)lending.n_spaces),
            chance_percent(10) ? -1
                               : chance_between(0, lending.n_nodes * lending.n_cards *
                                                       LENDING_CARD / lending.n_spaces));
}

static const struct chance_action actions[] = {
    {"submit", 6, lending_submit},
    {"crowd", 6, lending_crowd},
    {"finish", 12, lending_finish},
    {"leave", 8, lending_leave},
    {"quota", 1, change_quota},
    {"step", 40, lending_pass_time},
    {"takeover", 1, lending_change_replica},
    {"chaos", 1, lending_stir},
    {0},
};

int main(void)
{
    log_configure(g_getenv("GPULEDGER_TRACE") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
                  LOG_FORMAT_LOGFMT);
    chance_init("reclaim", 20000);
    check_hundred_cards();
    check_a_fifth();
    check_group(3, "3", 3);
    check_group(4, "4", 0);
    lending.group_min = NULL;
    while (chance_next_event()) {
        begin((int)chance_between(2, SPACES), (int)chance_between(1, 3), (int)chance_between(1, 3));
        const bool full = chance_percent(80); /* they are sure of all that there is */
        int64_t left = lending.n_nodes * lending.n_cards * LENDING_CARD;
        for (int i = 0; i < lending.n_spaces; i++) {
            const int64_t own =
                full && i == lending.n_spaces - 1 ? left : chance_between(0, left / 2);
            set_min(i, own);
            left -= own;
        }
        for (int i = 0; i < 100 && chance_next_event(); i++)
            chance_act(actions, NULL);
        lending_rest();
    }
    printf("# %u evictions, %u refused, %u takeovers\n", lending.n_evicted, lending.n_refused,
           lending.n_takeovers);
    HOLDS(lending.n_evicted > 100, "only %u evictions", lending.n_evicted);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces lend each other cards and take them back, while pods come, go and are evicted, and replicas take
 * over.
 *
 * The oracle is written from docs/quotas.md, "Taking back what is lent". It adds up what pods ask for, and
 * knows nothing else:
 *  - whoever is evicted is of a namespace that has as much above its min, those not counted that end already,
 *    has not asked to stay, is of no group, and its eviction was tried before;
 *  - who claims has waited for the delay; its namespace stays within its min with
 *    all that it holds and all of its that claim, or claims go; a claim is there once, and for ten minutes at most;
 *    of a group all claim, or none, and none once one of it is gone;
 *  - no more are on their way out than may be at once, and no more are evicted in a minute than may be,
 *    whoever is in charge, and whether or not it is known that they were;
 *  - nothing is claimed or evicted after the end of a term;
 *  - when nothing happens from outside, evictions come to an end, and nobody waits who could have room by the
 *    rule, as all sets of pods of all cards tell.
 */
#include "chance.h"
#include "../unit/objects.h"
#include "lending_cluster.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define SPACES 4
#define QUIET_STEPS 120

#define DELAY_MS 3000
#define MINUTE_MS 60000
#define AT_ONCE 50 /* of a world that limits neither, and of one minute */
#define PER_MINUTE 1000
#define SOON_MS 6000 /* by then the reclaimer has looked at what has changed */

static int64_t mins[LENDING_SPACES]; /* units; -1: no quota */
static int64_t disturbed_ms; /* when something last came from outside, or a watch was late */
static int64_t stirred_ms;   /* when there was last chaos */
static unsigned n_claims;
static unsigned takeovers; /* that judge_step has seen */
static GArray *attempts;   /* when an eviction was made or may have been, of the last minute */

/* --- the oracle ----------------------------------------------------------------------------------- */

/* Whether nothing has come from outside for so long, with chaos over for longer than a minute. */
static bool is_calm(int64_t ms)
{
    return lending.moment.now_ms - disturbed_ms >= ms &&
           lending.moment.now_ms - stirred_ms > MINUTE_MS + SOON_MS;
}

/* One more: how many there are beside it. What another replica did not see done, it cannot count. */
static void judge_rate(void)
{
    const int64_t now_ms = lending.moment.now_ms;
    int64_t outstanding = 0;

    while (attempts->len > 0 && now_ms - g_array_index(attempts, int64_t, 0) >= MINUTE_MS)
        g_array_remove_index(attempts, 0);
    for (int i = 0; i < LENDING_PODS; i++)
        outstanding += lending.pods[i].stage == STAGE_ENDS;
    if (lending.moment.now_ms - stirred_ms > MINUTE_MS + SOON_MS) {
        HOLDS(outstanding < (lending.at_once ? lending.at_once : AT_ONCE),
              "%ld are on their way out", (long)outstanding);
        HOLDS((int64_t)attempts->len < (lending.per_minute ? lending.per_minute : PER_MINUTE),
              "%u were evicted within a minute", attempts->len);
    }
    g_array_append_val(attempts, now_ms);
}

static void judge_eviction(const struct lending_pod *pod)
{
    judge_rate();
    HOLDS(!pod->grouped, "p%d is of a group", (int)(pod - lending.pods));
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
    const int64_t waited_s = lending.moment.now_ns / 1000000000 - claimant->created_s;

    n_claims++;
    HOLDS(waited_s * 1000 >= DELAY_MS, "p%d claims after %ld s", (int)(claimant - lending.pods),
          (long)waited_s);
    HOLDS(sum <= mins[space], "s%d is promised %ld of %ld", space, (long)sum, (long)mins[space]);
}

static void judge_named(const struct lending_pod *pod)
{
    HOLDS(!pod->refused, "p%d is to end, and its eviction was refused when it was tried",
          (int)(pod - lending.pods));
}

/* Of one Node, while it is calm. */
static void judge_claims_of(const GPtrArray *claims, GHashTable *seen)
{
    const int64_t now_ns = lending.moment.now_ns;

    for (guint i = 0; claims && i < claims->len; i++) {
        const struct room_claim *claim = claims->pdata[i];
        const struct lending_pod *pod = lending_find(claim->uid);
        if (claim_is_over(claim))
            continue;
        HOLDS(g_hash_table_add(seen, g_strdup(claim->uid)), "%s claims twice", claim->uid);
        HOLDS(pod && pod->stage == STAGE_WAITS, "%s claims, and does not wait", claim->uid);
        HOLDS(now_ns / 1000000 - claim->since_s * 1000 <= CLAIM_MS + SOON_MS,
              "%s claims for more than ten minutes", claim->uid);
        HOLDS(lending_held(pod->space, true) + pod->units <= mins[pod->space],
              "%s claims %d, and s%d has %ld of %ld", claim->uid, pod->units, pod->space,
              (long)lending_held(pod->space, true), (long)mins[pod->space]);
    }
}

/* All that wait of a namespace's group claim, or none. */
static void judge_group(int space, GHashTable *seen)
{
    int wait = 0, claim = 0;

    for (int i = 0; i < LENDING_PODS; i++) {
        const struct lending_pod *pod = &lending.pods[i];
        g_autofree char *uid = g_strdup_printf("p%d-%u", i, pod->born);
        if (pod->space != space || !pod->grouped || pod->stage != STAGE_WAITS)
            continue;
        wait++;
        claim += g_hash_table_contains(seen, uid);
    }
    HOLDS(claim == 0 || claim == wait, "%d of %d of a group claim", claim, wait);
}

static void judge_step(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    if (lending.chaos)
        stirred_ms = disturbed_ms = lending.moment.now_ms;
    if (lending.unsure &&
        lending.n_takeovers != takeovers) /* what was not made nobody else knows of */
        stirred_ms = lending.moment.now_ms;
    takeovers = lending.n_takeovers;
    if (!is_calm(SOON_MS))
        return;
    for (int node = 0; node < lending.n_nodes; node++) {
        g_autoptr(GPtrArray) claims = claims_decode(lending.notes[node].text, NULL);
        judge_claims_of(claims, seen);
    }
    for (int space = 0; space < lending.n_spaces; space++) {
        const int64_t promised = lending_promised(space);
        HOLDS(promised == 0 || lending_held(space, true) + promised <= mins[space],
              "s%d has %ld, is promised %ld, and is sure of %ld", space,
              (long)lending_held(space, true), (long)promised, (long)mins[space]);
        judge_group(space, seen);
    }
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
    .named = judge_named,
    .step = judge_step,
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
        store_drop_quota(lending.store, &view);
        return;
    }
    view.min = (struct string_pairs){pairs, 1};
    store_put_quota(lending.store, &view);
}

static void begin(int spaces, int nodes, int cards)
{
    lending.judge = &judge;
    lending_begin(spaces, nodes, cards);
    g_array_set_size(attempts, 0);
    disturbed_ms = lending.moment.now_ms;
    stirred_ms = 0;
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

/* Somebody else binds it to a card of the first node. */
static void hold(int number, int card)
{
    if (number < 0)
        return;
    lending.pods[number].stage = STAGE_HELD;
    lending.pods[number].node = 0;
    lending.pods[number].card = card;
    lending_tell(number);
}

/* Of a group of three one is bound: the others get two cards. */
static void check_rest_of_group(void)
{
    lending.group_min = "3";
    begin(2, 1, 3);
    set_min(0, 0);
    set_min(1, 30);
    for (int i = 0; i < 2; i++)
        lending_create(0, LENDING_CARD, 0, false);
    lending_step();
    const int used = lending.pods[0].card + lending.pods[1].card;
    for (int i = 0; i < 3; i++) {
        const int number = lending_create(1, LENDING_CARD, 0, false);
        lending.pods[number].grouped = true;
        if (i == 0)
            hold(number, 3 - used); /* of cards 0, 1 and 2 the free one */
        else
            lending_tell(number);
    }
    for (int i = 0; i < 30; i++)
        lending_step();
    HOLDS(lending.evicted_units[0] == 2 * LENDING_CARD, "A gave %ld",
          (long)lending.evicted_units[0]);
    HOLDS(lending_count(1, STAGE_HELD) == 3, "B has %d", lending_count(1, STAGE_HELD));
    printf("# the rest of a group got %ld cards\n", (long)lending.evicted_units[0] / LENDING_CARD);
}

/* Of a group of three that claims one pod is deleted before anybody has ended for it. */
static void check_group_that_loses_one(void)
{
    int last = -1;

    lending.group_min = "3";
    begin(2, 1, 4);
    lending.stuck = true;
    set_min(0, 10);
    set_min(1, 30);
    for (int i = 0; i < 4; i++)
        lending_create(0, LENDING_CARD, 0, false);
    lending_step();
    for (int i = 0; i < 3; i++) {
        last = lending_create(1, LENDING_CARD, 0, false);
        lending.pods[last].grouped = true;
        lending_tell(last);
    }
    for (int i = 0; i < 10; i++)
        lending_step();
    HOLDS(lending_promised(1) == 3 * LENDING_CARD, "B is promised %ld", (long)lending_promised(1));
    lending_end(last);
    for (int i = 0; i < 2; i++)
        lending_step();
    HOLDS(lending_promised(1) == 0, "B, of whose group one is gone, is promised %ld",
          (long)lending_promised(1));
    printf("# a group that has lost one claims nothing\n");
}

static int never; /* a pod that kube-scheduler never binds */

static void schedule_others(int number)
{
    if (number != never)
        lending_schedule(number);
}

/* B is sure of two cards and claims both; then one of its pods comes otherwise. */
static void check_claims_together(void)
{
    begin(2, 1, 4);
    lending.stuck = true;
    set_min(0, 20);
    set_min(1, 20);
    for (int i = 0; i < 4; i++)
        lending_create(0, LENDING_CARD, 0, false);
    lending_step();
    set_min(0, 0); /* so that it could give both */
    for (int i = 0; i < 2; i++)
        lending_create(1, LENDING_CARD, 0, false);
    for (int i = 0; i < 10; i++)
        lending_step();
    HOLDS(lending_promised(1) == 2 * LENDING_CARD, "B is promised %ld", (long)lending_promised(1));
    const int card = lending.pods[0].card;
    lending_end(0);
    hold(lending_create(1, LENDING_CARD, 0, false), card);
    for (int i = 0; i < 2; i++)
        lending_step();
    HOLDS(lending_promised(1) == LENDING_CARD, "B has a card of two, and is promised %ld",
          (long)lending_promised(1));
    printf("# who has one card of two claims one\n");
}

/* A pod of the namespace that waits. */
static int borrower_of(int space)
{
    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[i].space == space && lending.pods[i].stage == STAGE_WAITS)
            return i;
    }
    return -1;
}

/* Whose pod does not come is given room again after a minute, after two, after four. */
static void check_pauses(void)
{
    int64_t before_ms = 0, pause_ms = MINUTE_MS;
    int64_t given = 0;

    begin(2, 1, 1);
    set_min(0, 0);
    set_min(1, LENDING_CARD);
    lending_create(0, LENDING_CARD, 0, true);
    lending_step();
    never = lending_create(1, LENDING_CARD, 0, false);
    lending.schedule = schedule_others;
    for (int i = 0; i < 4 * (int)(CLAIM_MS / 1000) + 900; i++) {
        lending_step();
        if (!lending.notes[0].text && lending_count(0, STAGE_HELD) == 0)
            hold(borrower_of(0), 0); /* nothing is lent while B waits: somebody else has bound it */
        if (lending.evicted_units[0] == given * LENDING_CARD)
            continue;
        HOLDS(given == 0 || lending.moment.now_ms - before_ms >= CLAIM_MS + pause_ms,
              "A gives again after %ld ms", (long)(lending.moment.now_ms - before_ms));
        pause_ms *= given++ ? 2 : 1;
        before_ms = lending.moment.now_ms;
    }
    lending.schedule = NULL;
    HOLDS(given == 4, "A gave %ld times", (long)given);
    printf("# who did not come was given room %ld times\n", (long)given);
}

/* Nobody ends for a pod, since a budget has nothing to give: it claims again after one minute, two, four. */
static void check_backoff(void)
{
    int64_t before_ms = 0, pause_ms = MINUTE_MS;
    unsigned known;

    begin(2, 1, 1);
    lending.stuck = true;
    set_min(0, 0);
    set_min(1, LENDING_CARD);
    lending_create(0, LENDING_CARD, 0, true);
    lending_step();
    lending_create(1, LENDING_CARD, 0, false);
    const unsigned first = known = n_claims;
    for (int i = 0; i < 4 * (int)(CLAIM_MS / 1000) + 900; i++) {
        lending_step();
        if (n_claims == known)
            continue;
        if (known > first) {
            HOLDS(lending.moment.now_ms - before_ms >= CLAIM_MS + pause_ms,
                  "claims again after %ld ms", (long)(lending.moment.now_ms - before_ms));
            pause_ms *= 2;
        }
        known = n_claims;
        before_ms = lending.moment.now_ms;
    }
    HOLDS(known - first == 4, "%u claims", known - first);
    printf("# who got no room claimed %u times\n", known - first);
}

/* --- rounds ---------------------------------------------------------------------------------------------- */

static void change_quota(void *data)
{
    set_min((int)chance_below((uint32_t)lending.n_spaces),
            chance_percent(10) ? -1
                               : chance_between(0, lending.n_nodes * lending.n_cards *
                                                       LENDING_CARD / lending.n_spaces));
}

/* A pod asks to stay, also one that is to end. */
static void opt_out(void *data)
{
    int number = (int)chance_below(LENDING_PODS);

    for (int node = 0; node < lending.n_nodes; node++) {
        g_autoptr(GPtrArray) claims = claims_decode(lending.notes[node].text, NULL);
        for (guint i = 0; claims && i < claims->len; i++) {
            const struct room_claim *claim = claims->pdata[i];
            for (char **uid = claim->ends; *uid; uid++) {
                const struct lending_pod *pod = lending_find(*uid);
                if (pod && pod->stage == STAGE_HELD)
                    number = (int)(pod - lending.pods);
            }
        }
    }
    for (int i = 0; i < LENDING_PODS; i++) {
        const int at = (number + i) % LENDING_PODS;
        if (lending.pods[at].stage == STAGE_HELD && !lending.pods[at].opts_out) {
            lending.pods[at].opts_out = true;
            lending_tell(at);
            return;
        }
    }
}

#define FROM_OUTSIDE(name, what)                                                                   \
    static void name(void *data)                                                                   \
    {                                                                                              \
        disturbed_ms = lending.moment.now_ms;                                                      \
        what(data);                                                                                \
    }
FROM_OUTSIDE(submit, lending_submit)
FROM_OUTSIDE(crowd, lending_crowd)
FROM_OUTSIDE(finish, lending_finish)
FROM_OUTSIDE(leave, lending_leave)
FROM_OUTSIDE(quota, change_quota)
FROM_OUTSIDE(stay, opt_out)
FROM_OUTSIDE(replace, lending_change_replica)
FROM_OUTSIDE(stir, lending_stir)

static const struct chance_action actions[] = {
    {"submit", 6, submit},
    {"crowd", 6, crowd},
    {"finish", 12, finish},
    {"leave", 8, leave},
    {"quota", 1, quota},
    {"stay", 2, stay},
    {"step", 60, lending_pass_time},
    {"takeover", 1, replace},
    {"chaos", 1, stir},
    {0},
};

/* How evictions go in this world. */
static void vary(void)
{
    if (chance_percent(50)) {
        lending.at_once = chance_between(1, 4);
        lending.per_minute = chance_between(2, 12);
    }
    lending.unsure = chance_percent(50);
    lending.shaky = chance_percent(30);
    lending_take_over();
}

int main(void)
{
    log_configure(g_getenv("GPULEDGER_TRACE") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
                  LOG_FORMAT_LOGFMT);
    attempts = g_array_new(FALSE, FALSE, sizeof(int64_t));
    chance_init("reclaim", 4000);
    check_hundred_cards();
    check_a_fifth();
    check_group(3, "3", 3);
    check_group(4, "4", 0);
    check_rest_of_group();
    check_group_that_loses_one();
    lending.group_min = NULL;
    check_claims_together();
    check_pauses();
    check_backoff();
    while (chance_next_event()) {
        begin((int)chance_between(2, SPACES), (int)chance_between(1, 3), (int)chance_between(1, 3));
        vary();
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
        disturbed_ms = lending.moment.now_ms;
        lending_rest();
    }
    g_array_free(attempts, TRUE);
    printf("# %u evictions, %u refused, %u takeovers\n", lending.n_evicted, lending.n_refused,
           lending.n_takeovers);
    HOLDS(lending.n_evicted > 100, "only %u evictions", lending.n_evicted);
    return 0;
}

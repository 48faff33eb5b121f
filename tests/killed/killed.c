/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever writes to the API server in more than one step may be killed between any two of its writes. Each scenario
 * is played once undisturbed, which says how many writes there are; then, for each of them, it is killed there, just
 * before or just after it is carried out, or it serves no more from there on, or the write goes wrong; and another
 * replica finds the API server as it then is. It has to come to a good end all the same.
 *
 *   killed                    all of it
 *   killed SCENARIO           one scenario
 *   killed SCENARIO STRIKE N  one run; GPULEDGER_TRACE=FILE records what was decided
 */
#include "../faults/net.h"
#include "../faults/sim.h"
#include "../prop/chance.h"
#include "life.h"
#include "replica.h"
#include "scenarios.h"
#include "strikes.h"

#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000)
#define BETWEEN_S 20        /* until another one is there, at most */
#define ON_ITS_WAY_US 4000  /* what was sent before */
#define UNDER_WAY_US 100000 /* what had begun, with all its calls */
#define AFTER_S                                                                                    \
    130 /* what is left then is left for ever: marks of plans are good for two minutes */

static char *what; /* is played, for a failure */
static unsigned n_runs;

/* Whoever serves no more begins nothing: what he writes then is on its way already, or about nothing but himself. */
static void note_change(const struct server_request *request, const char *path)
{
    const char *token = request->authorization;
    const struct replica *replica = replica_find(token[strlen(token) - 1]);
    const bool evicts = g_str_has_suffix(path, "/eviction");
    const int64_t under_way_us = evicts ? ON_ITS_WAY_US : UNDER_WAY_US;

    HOLDS(!replica || replica->deposed_us == 0 ||
              sim_now_us() < replica->deposed_us + under_way_us ||
              g_str_has_suffix(path, "/events") || strstr(request->body, "dryRun") ||
              strstr(path, "/secrets/"), /* any replica writes lost keys again */
          "%s: who serves no more sends %s %s %s", what, request->method, path,
          request->body ? request->body : "");
}

static void strike_now(const struct strike *strike, int64_t *ret_begins_us)
{
    sim_trace("the blow: %s", strike->fault.name);
    if (strike->deposes) {
        replica_depose();
        return;
    }
    replicas_kill();
    *ret_begins_us = sim_now_us() + chance_between(1, BETWEEN_S) * S;
    life_begin();
}

static void let_pass(int64_t until_us, const struct strike *strike, bool to_the_end)
{
    int64_t begins_us = 0;

    for (;;) {
        const char *why = NULL;
        if (strikes_has_fallen())
            strike_now(strike, &begins_us);
        if (begins_us > 0 && sim_now_us() >= begins_us) {
            replica_start();
            begins_us = 0;
        }
        const int64_t next_us = begins_us > 0 ? MIN(begins_us, until_us) : until_us;
        if (sim_now_us() >= until_us) {
            HOLDS(to_the_end, "%s: never over: %s", what, (why = scenario->look()) ? why : "?");
            return;
        }
        sim_step(MIN(next_us, sim_now_us() + S));
        if (begins_us == 0 && !(why = scenario->look()) && !to_the_end)
            return;
    }
}

/* Returns how many writes there were. */
static unsigned play(const struct scenario *which, const struct strike *strike, unsigned at)
{
    g_free(what);
    what = g_strdup_printf("%s: %s at write %u", which->name,
                           strike ? strike->fault.name : "nothing", at);
    scenario = which;
    chance_restart(1);
    sim_trace("%s", what);
    sim_reset();
    net_reset();
    api_reset();
    life_reset();
    strikes_set(strike, at);
    scenario->build();
    api.changed = note_change;
    life_begin();
    replica_start();
    let_pass(sim_now_us() + scenario->patience_s * S, strike, false);
    let_pass(sim_now_us() + AFTER_S * S, strike, true);
    scenario->check(!strike || !strike->refuses);
    const unsigned n = strikes_n();
    replicas_kill();
    n_runs++;
    return n;
}

/* A failure ends the program. */
static void say_what(int number)
{
    fprintf(stderr, "  killed %s\n", what);
}

static bool is_wanted(char **words, int n, int i, const char *name)
{
    return n <= i || g_str_equal(words[i], name);
}

int main(int argc, char **argv)
{
    const char *trace = g_getenv("GPULEDGER_TRACE");

    chance_init("killed", 1);
    signal(SIGABRT, say_what);
    if (trace)
        sim_trace_to(fopen(trace, "w"));
    log_configure(trace ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    for (const struct scenario *const *each = scenarios; *each; each++) {
        if (!is_wanted(argv, argc, 1, (*each)->name))
            continue;
        const unsigned all = play(*each, NULL, 0);
        const unsigned n = (*each)->most > 0 ? MIN(all, (*each)->most) : all;
        for (const struct strike *strike = strikes; strike->fault.name; strike++) {
            if (!is_wanted(argv, argc, 2, strike->fault.name) ||
                (argc <= 2 && (*each)->deaths_only && strike->refuses))
                continue;
            for (unsigned at = 1; at <= n; at += argc > 3 ? 1 : MAX((*each)->stride, 1)) {
                if (argc <= 3 || at == (unsigned)atoi(argv[3]))
                    play(*each, strike, at);
            }
        }
        printf("%s: %u of %u writes\n", (*each)->name, n, all);
    }
    printf("%u runs\n", n_runs);
    g_free(what);
    return EXIT_SUCCESS;
}

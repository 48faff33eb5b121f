/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong on the way, in place of ../faults/faults.c: no watch falls silent for minutes, so that what the
 * program knows is never older than the oracle bears with. */
#include "../faults/faults.h"
#include "../killed/strikes.h"
#include "../prop/chance.h"

#define MS 1000
#define S (1000 * MS)

static const struct fault faults[] = {
    {"no connection", ACT_REFUSE, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 4},
    {"409", ACT_STATUS, WAY_WRITE, 4, 409, 0, "Conflict"},
    {"410", ACT_STATUS, WAY_WATCH, 2, 410, 0, "Expired"},
    {"429", ACT_STATUS, WAY_READ | WAY_WRITE, 4, 429, 0, "TooManyRequests"},
    {"500", ACT_STATUS, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 4, 500, 0, "InternalError"},
    {"503", ACT_STATUS, WAY_READ | WAY_WRITE, 2, 503, 2, "ServiceUnavailable"},
    {"403", ACT_STATUS, WAY_WRITE, 2, 403, 0, "Forbidden"},
    {"504", ACT_STATUS, WAY_READ | WAY_WRITE, 2, 504, 0, "Timeout"},
    {"request lost", ACT_LOSE, WAY_READ | WAY_WRITE, 2},
    {"slow", ACT_SLOW, WAY_READ | WAY_WRITE, 4},
    {"given up, carried out later", ACT_LATE, WAY_WRITE, 5},
    {"done, answered with 500", ACT_DONE_500, WAY_WRITE, 4},
    {"done, reply cut", ACT_DONE_CUT, WAY_READ | WAY_WRITE, 5},
    {"done, no reply", ACT_DONE_LOST, WAY_WRITE, 5},
    {"change told twice", ACT_REPEAT, WAY_WATCH, 5},
    {"watch ends", ACT_END, WAY_WATCH, 5},
};
static const struct fault no_fault = {"none", ACT_NONE};
static unsigned trouble;

void faults_set_trouble(unsigned percent)
{
    trouble = percent;
}

bool faults_possible(void)
{
    return trouble > 0;
}

const struct fault *faults_draw(enum way way)
{
    unsigned total = 0;
    size_t i = 0;

    if (!chance_percent(trouble))
        return &no_fault;
    for (i = 0; i < G_N_ELEMENTS(faults); i++)
        total += faults[i].ways & way ? faults[i].weight : 0;
    unsigned drawn = chance_below(total);
    for (i = 0; !(faults[i].ways & way) || drawn >= faults[i].weight; i++)
        drawn -= faults[i].ways & way ? faults[i].weight : 0;
    return &faults[i];
}

const struct fault *faults_draw_midway(void)
{
    return NULL;
}

int64_t faults_draw_lag_us(void)
{
    if (trouble == 0 || chance_percent(60))
        return chance_below(2 * MS);
    return chance_percent(90) ? chance_below(100 * MS) : chance_below(2 * S);
}

const char *faults_count(unsigned i, uint64_t *ret_count)
{
    return NULL;
}

void strikes_served(void)
{
}

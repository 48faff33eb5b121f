/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include "../prop/chance.h"

#define MS 1000
#define S (1000 * MS)

static const struct fault faults[] = {
    {"no connection", ACT_REFUSE, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 4},
    {"request lost", ACT_LOSE, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 2},
    {"409", ACT_STATUS, WAY_WRITE, 4, 409, 0, "Conflict"},
    {"410", ACT_STATUS, WAY_LIST | WAY_WATCH, 4, 410, 0, "Expired"},
    {"429", ACT_STATUS, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 3, 429, 0, "TooManyRequests"},
    {"429, Retry-After", ACT_STATUS, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 3, 429, 1,
     "TooManyRequests"},
    {"500", ACT_STATUS, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 4, 500, 0, "InternalError"},
    {"503", ACT_STATUS, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 2, 503, 2,
     "ServiceUnavailable"},
    {"403", ACT_STATUS, WAY_WRITE, 1, 403, 0, "Forbidden"},
    {"504", ACT_STATUS, WAY_READ | WAY_WRITE | WAY_LIST, 2, 504, 0, "Timeout"},
    {"slow", ACT_SLOW, WAY_READ | WAY_WRITE | WAY_LIST | WAY_WATCH, 8},
    {"given up, carried out later", ACT_LATE, WAY_WRITE, 6},
    {"done, answered with 500", ACT_DONE_500, WAY_WRITE, 4},
    {"done, reply cut", ACT_DONE_CUT, WAY_READ | WAY_WRITE, 6},
    {"done, no reply", ACT_DONE_LOST, WAY_WRITE, 5},
    {"cut in the middle", ACT_CUT, WAY_READ | WAY_LIST | WAY_WATCH, 5},
    {"change told twice", ACT_REPEAT, WAY_WATCH, 5},
    {"watch: ERROR 410", ACT_ERROR, WAY_WATCH, 4, 410, 0, "Expired"},
    {"watch: ERROR 500", ACT_ERROR, WAY_WATCH, 2, 500, 0, "InternalError"},
    {"watch: ERROR 429", ACT_ERROR, WAY_WATCH, 1, 429, 0, "TooManyRequests"},
    {"watch falls silent", ACT_SILENCE, WAY_WATCH, 2},
    {"watch ends", ACT_END, WAY_WATCH, 5},
    {"409 for etcd's timeout", ACT_OPEN, WAY_WRITE, 4, 409, 0, "Conflict"},
};
static const struct fault no_fault = {"none", ACT_NONE};

static unsigned trouble;
static unsigned factors[G_N_ELEMENTS(faults)]; /* of the weights */
static uint64_t counts[G_N_ELEMENTS(faults)];

void faults_set_trouble(unsigned percent)
{
    trouble = percent;
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++)
        factors[i] = chance_percent(40) ? 0 : chance_percent(70) ? 1 : 10;
}

bool faults_possible(void)
{
    return trouble > 0;
}

const char *faults_count(unsigned i, uint64_t *ret_count)
{
    *ret_count = i < G_N_ELEMENTS(faults) ? counts[i] : 0;
    return i < G_N_ELEMENTS(faults) ? faults[i].name : NULL;
}

static unsigned weight_of(const struct fault *fault, enum way way)
{
    return fault->ways & way ? fault->weight * factors[fault - faults] : 0;
}

static const struct fault *draw(enum way way)
{
    unsigned total = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++)
        total += weight_of(&faults[i], way);
    if (total == 0)
        return &no_fault;
    unsigned drawn = chance_below(total);
    size_t i = 0;
    while (drawn >= weight_of(&faults[i], way))
        drawn -= weight_of(&faults[i++], way);
    counts[i]++;
    return &faults[i];
}

const struct fault *faults_draw(enum way way)
{
    return chance_percent(trouble) ? draw(way) : &no_fault;
}

const struct fault *faults_draw_midway(void)
{
    return chance_below(1000) < trouble ? draw(WAY_WATCH) : NULL;
}

int64_t faults_draw_lag_us(void)
{
    if (trouble == 0 || chance_percent(60))
        return chance_below(2 * MS);
    if (chance_percent(80))
        return chance_below(100 * MS);
    return chance_percent(80) ? chance_below(3 * S) : chance_below(30 * S);
}

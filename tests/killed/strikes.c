/* SPDX-License-Identifier: Apache-2.0 */
#include "strikes.h"

#include "../prop/chance.h"

const struct strike strikes[] = {
    {{"killed after", ACT_DONE_LOST}, .kills = true},
    {{"killed before", ACT_LOSE}, .kills = true},
    {{"deposed after", ACT_NONE}, .deposes = true},
    {{"403", ACT_STATUS, .status = 403, .reason = "Forbidden"}, .refuses = true},
    {{"409", ACT_STATUS, .status = 409, .reason = "Conflict"}, .refuses = true},
    {{"429", ACT_STATUS, .status = 429, .reason = "TooManyRequests"}, .refuses = true},
    {{"500", ACT_STATUS, .status = 500, .reason = "InternalError"}, .refuses = true},
    {{"done, and 500", ACT_DONE_500, .status = 500}, .refuses = true},
    {{"no answer", ACT_LOSE}, .refuses = true},
    {{"done, and no answer", ACT_DONE_LOST}, .refuses = true},
    {{"done later", ACT_LATE}, .refuses = true},
    {{NULL}},
};
static const struct fault no_fault = {"none", ACT_NONE};

static const struct strike *strike;
static unsigned at, n;
static bool pending, fallen;

void strikes_set(const struct strike *which, unsigned at_write)
{
    strike = which;
    at = at_write;
    n = 0;
    pending = fallen = false;
}

unsigned strikes_n(void)
{
    return n;
}

void strikes_served(void)
{
    fallen |= pending;
    pending = false;
}

bool strikes_has_fallen(void)
{
    const bool was = fallen;

    fallen = false;
    return was;
}

const struct fault *faults_draw(enum way way)
{
    if (way != WAY_WRITE || ++n != at || !strike)
        return &no_fault;
    fallen = strike->kills && strike->fault.act == ACT_LOSE;
    pending = (strike->kills || strike->deposes) && !fallen;
    return &strike->fault;
}

const struct fault *faults_draw_midway(void)
{
    return NULL;
}

bool faults_possible(void)
{
    return false;
}

int64_t faults_draw_lag_us(void)
{
    return chance_below(2000);
}

void faults_set_trouble(unsigned percent)
{
}

const char *faults_count(unsigned i, uint64_t *ret_count)
{
    return NULL;
}

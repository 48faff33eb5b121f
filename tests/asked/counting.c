/* SPDX-License-Identifier: Apache-2.0 */
#include "counting.h"

GATE_ROW(counting, 900);
GATE_ROW(counting_left_out, 910);

unsigned counted_asked[GATE_ASKERS_N], counted_left_out[GATE_ASKERS_N];

static enum gate_scope begin(const void *self, const struct gate_who *who)
{
    return GATE_ALL;
}

static unsigned shut(const void *self, const struct gate_who *who, const struct node *node)
{
    counted_asked[who->asker]++;
    return 0;
}

static unsigned shut_left_out(const void *self, const struct gate_who *who, const struct node *node)
{
    counted_left_out[who->asker]++;
    return 0;
}

const struct gate gate_counting = {
    .name = "counting",
    .left_out = GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                            ASKED, ASKED),
    .turn = GATE_BEFORE_CARDS,
    .begin = begin,
    .shut = shut,
};

#define NOBODY GATE_LEFT_OUT("to show that a row steers")

const struct gate gate_counting_left_out = {
    .name = "counting_left_out",
    .left_out = GATE_ASKERS(NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY,
                            NOBODY, NOBODY, NOBODY),
    .turn = GATE_BEFORE_CARDS,
    .begin = begin,
    .shut = shut_left_out,
};

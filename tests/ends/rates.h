/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How many pods the program ends, and how often. One of which it does not know what became of it counts. */
#include "ends.h"

void rates_reset(void);
/* A replica begins to serve. */
void rates_begin(void);
/* An eviction is sent by the replica of that name. False: it is the same once more, of which nothing was heard. */
bool rates_sent(enum capability capability, char by, const char *ns, const char *uid);
void rates_heard(enum capability capability, const char *uid, long status);
void rates_accepted(enum capability capability, const char *uid);
/* So many pods have been ended within that time. */
unsigned rates_n_ended(int64_t within_us);
uint64_t rates_n(enum capability capability);

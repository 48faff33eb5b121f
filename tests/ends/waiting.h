/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who waits in vain: pods within their namespaces' mins for which others would only have to give back. */
#include "ends.h"

void waiting_reset(void);
/* Every few seconds; calm: nothing keeps the program from serving. */
void waiting_look(bool calm);
/* How many of these there were, in all worlds, and for how long one of them waited at most. */
uint64_t waiting_n(int64_t *ret_most_us);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who waits in vain: pods within their namespaces' mins for which others would only have to give back. */
#include "ends.h"

void waiting_reset(void);
/* Every minute or so, of a world in which nothing is disturbed. */
void waiting_look(void);

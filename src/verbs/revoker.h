/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Revokes promises that are stray (queue/strays.h). */
#include "store/cluster.h"

/* Revokes some of them; one thread, from time to time, of the replica that serves. Not under the lock.
 * Returns how many. */
unsigned revoker_run(struct store *store, struct cluster *cluster);

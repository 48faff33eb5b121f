/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes the seals that are missing (store/seals/sealing.h). */
#include "store/cluster.h"

/* Writes some of them; one thread, from time to time, of the replica that serves. Not under the lock.
 * Returns how many. */
unsigned sealer_run(struct store *store, struct cluster *cluster);

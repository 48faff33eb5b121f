/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part that remembers which pods a source outside calls idle (policy/idleness.h). It decides nothing but the order
 * of victims.
 */
#include "gate/part.h"
#include "policy/idleness.h"

PART_ROW(idle_pods, 40);

/* Under the lock; NULL: no source has answered yet. */
struct idleness *idle_pods_known(const void *self);
/* From now on it is `*idleness`; leaves there what it was before. For store_change_part. */
bool idle_pods_take(void *self, void *idleness);

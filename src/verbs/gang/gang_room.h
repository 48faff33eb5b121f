/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which nodes room is kept on for a group that finds none (gang/gangs.h): as few as would hold what it
 * lacks if nobody else were there, those that are used least first. Under the store's lock.
 */
#include "gang/gangs.h"

/* As struct gang_ask wants it; `data` is a struct gang_places_query. */
uint64_t gang_room_choose(void *data, const struct gang_need *need, struct gang_choice *ret_choice);

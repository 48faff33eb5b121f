/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What nobody calls for and has to be done once a second: bookings that the watch leaves open are settled, waits
 * end, seals are written, pods that were refused are woken. It also tells when the cluster has been read.
 */
#include "verbs/extender.h"
#include "cmd/keys.h"

struct housekeeping;

/* Starts its thread. Borrows both; `keys` may be NULL. NULL, with an error: no thread can be had. */
struct housekeeping *housekeeping_start(struct extender *extender, struct keys *keys,
                                        GError **error);

/* Waits for what is under way. NULL is fine. */
void housekeeping_free(struct housekeeping *housekeeping);

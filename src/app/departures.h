/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that vanished while their node side had yet to take them: deleted by force, most of all. kubelet
 * has them in its queue, and may still call Allocate for them: that call would take the turn of a pod
 * of their size. So they count as waiting for DEPARTURE_MAX_MS more (struct node, `departed`), and hold
 * nothing. A pod that kubelet has turned away is told of alike and counts alike, since the watch leaves
 * out pods that have ended.
 *
 * Time passes as in app/waits.h, whose part this is.
 *
 * Guarded by the store's lock.
 */
#include "json/json.h"

#include <gpuledger/ledger.h>

/* What kubelet may have before it in its queue: a call is made at a time, of up to 0.4 s each. */
#define DEPARTURE_MAX_MS 10000

struct departures;

struct departures *departures_new(void);
void departures_free(struct departures *departures);
void departures_copy(struct departures *departures, const struct departures *from);

/* The pod, which is still in the ledger, is gone. Who does not wait is ignored. */
void departures_note(struct departures *departures, struct ledger *ledger,
                     const struct allocation *allocation);

/* Returns whether there were any whose time begins. */
bool departures_begin(struct departures *departures, int64_t now_ms);

/* Returns whether anybody is waited for no longer. */
bool departures_end(struct departures *departures, struct ledger *ledger, int64_t now_ms);

/*   [{"uid":"u1","node":"n1","dialect":"gpushare","amount":2,"time":"NS","since":MS}] */
void departures_encode(struct json_writer *writer, const struct departures *departures);
bool departures_decode(struct departures *departures, struct ledger *ledger,
                       struct json_arena *arena, const cJSON *list, GError **error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that vanished while their node side had yet to take them: deleted by force, most of all. kubelet
 * has them in its queue, and may still call Allocate for them: that call would take the turn of a pod
 * of their size. So they count as waiting for DEPARTURE_MAX_MS more (struct node, `departed`), and hold
 * nothing. A pod that has ended is shown as Succeeded or Failed first: kubelet has done with it, and it
 * does not count. What a node side may still hand out of its is another matter (queue/strays.h).
 *
 * There are at most DEPARTURES_MAX: of the namespace that has most, who vanished the longest ago is
 * forgotten. Then a pod of its size on its node does not wait for it, and if kubelet does call for who
 * was forgotten, that pod may be left without a card and has to be made anew. No card is over-committed
 * by that: who departs holds nothing here, whether it counts or not.
 *
 * Time passes as in gate/waits/waits.h, whose part this is.
 *
 * Guarded by the store's lock.
 */
#include "json/json.h"

#include <gpuledger/ledger.h>

/* What kubelet may have before it in its queue: a call is made at a time, of up to 0.4 s each. */
#define DEPARTURE_MAX_MS 10000

/* In all. */
#define DEPARTURES_MAX 1024

struct departures;

struct departures *departures_new(void);
void departures_free(struct departures *departures);

/* What another has noted, into one that has noted nothing, a few at a time under the other's lock:
 * `number` is 0 at first. False: that was the last of it. */
bool departures_copy(struct departures *departures, const struct departures *from,
                     uint64_t *number);

/* The pod, which is still in the ledger, is gone. Who does not wait is ignored. */
void departures_note(struct departures *departures, struct ledger *ledger,
                     const struct allocation *allocation);

/* Returns whether there were any whose time begins. */
bool departures_begin(struct departures *departures, int64_t now_ms);

/* Returns whether anybody is waited for no longer. */
bool departures_end(struct departures *departures, struct ledger *ledger, int64_t now_ms);

/* Who counts by one moment, taken a few at a time (base/roll.h). One at a time. */
struct departures_image;
struct departures_image *departures_image_new(void);
void departures_image_free(
    struct departures_image *image); /* once it is complete, or has not begun */
/* Under the lock: it is of this moment. */
void departures_image_begin(struct departures_image *image, struct departures *departures);
/* Under the lock: some more. False: it is complete. */
bool departures_image_take(struct departures_image *image);

/* A complete one, as a record has it, and back; false: it cannot be understood.
 *
 *   [{"uid":"u1","node":"n1","namespace":"ml","dialect":"gpushare","amount":2,"time":"NS","since":MS}] */
void departures_encode(struct json_writer *writer, struct departures_image *image);
bool departures_decode(struct departures *departures, struct ledger *ledger,
                       struct json_arena *arena, const cJSON *list, GError **error);

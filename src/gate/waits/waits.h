/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For how long a pod is waited for that its node side has not taken, and for how long a card is held
 * that an edit of its annotations names: WAIT_MAX_MS from when it was bound, and once more from when
 * kubelet admitted it, for the node side has done its part by then. A pod that fails to start, or
 * whose annotations say that nobody has taken it, keeps nobody waiting for longer. Only who kubelet has not
 * started, and whose promise stands (docs/design/promises.md), is waited for as long as that is so: no
 * pod's author can put that off.
 *
 * Time passes from the first decision that finds the pod so, or from housekeeping's next look, not
 * from the event that told of it: a record has the moments of those alone.
 *
 * Guarded by the store's lock.
 */
#include "gate/part.h"

#include <gpuledger/ledger.h>

#define WAIT_MAX_MS 60000

PART_ROW(waits, 8);

struct waits;

struct waits *waits_new(void);
void waits_free(struct waits *waits);

/* What another has noted, into one that has noted nothing, a few pods at a time under the other's lock:
 * `cursor` is PART_BEGIN at first. False: that was the last of it. */
bool waits_copy(struct waits *waits, const struct waits *from, struct part_cursor *cursor);

/* The pod as it is in the ledger now; `started`: kubelet has admitted it. Who neither waits nor has
 * cards that an edit names is forgotten. */
void waits_note(struct waits *waits, const struct allocation *allocation, bool started);
void waits_forget(struct waits *waits, const char *uid);

/* The pod has vanished, and is about to be dropped: it counts for a while more (gate/waits/departures.h). */
void waits_note_vanished(struct waits *waits, struct ledger *ledger,
                         const struct allocation *allocation);

/* A decision is made, or housekeeping looks: the time of those that are new begins. Returns whether
 * there were any. */
bool waits_begin(struct waits *waits, const struct ledger *ledger, int64_t now_ms);

/* What has come of waiting by one moment, taken a few pods at a time (base/roll.h). One at a time. */
struct waits_image;
struct waits_image *waits_image_new(void);
void waits_image_free(struct waits_image *image); /* once it is complete, or has not begun */
typedef struct waits_image waits_image;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(waits_image, waits_image_free)
/* Under the lock: it is of this moment. */
void waits_image_begin(struct waits_image *image, struct waits *waits);
/* Under the lock: some more pods. False: it is complete. */
bool waits_image_take(struct waits_image *image);

/* A complete one, as a record has it, and back; false: it cannot be understood.
 *
 *   {"pods":[{"uid":"u1","since":MS,"started":true},{"uid":"u2","over":true}],"vanished":[…]} */
void waits_encode(struct json_writer *writer, struct waits_image *image);
bool waits_decode(struct waits *waits, struct ledger *ledger, struct json_arena *arena,
                  const cJSON *object, GError **error);

/* Ends what has lasted too long, in the ledger. Returns whether there was any. */
bool waits_end(struct waits *waits, struct ledger *ledger, int64_t now_ms);

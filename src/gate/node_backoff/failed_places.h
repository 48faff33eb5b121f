/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Places for MIG instances in which a device plugin has failed to make one. What the plugin does not know of stays
 * there: instances of before its start, and what it could not take down while another pod computes
 * (Project-HAMi/HAMi@v2.10.0:pkg/device-plugin/nvidiadevice/nvinternal/plugin/migmgr.go:366, 456-466, 500-513). So the
 * place is left alone for FAILED_PLACE_MS, for pods of the namespace whose pod failed: whoever may write a
 * pod's status can say that it was rejected. For this folder alone, which has the times.
 */
#include "json/json.h"

#include <gpuledger/ledger.h>

#define FAILED_PLACE_MS 600000
#define FAILED_PLACES_MAX 64 /* of one site; the oldest are forgotten */

struct failed_place {
    char *ns;
    int32_t card;
    struct mig_place place;
    int64_t until_ms; /* 0: no decision has found it yet */
};

/* Of struct failed_place *. */
GPtrArray *failed_places_new(void);
void failed_places_copy(GPtrArray *places, const GPtrArray *from);

/* The plugin has failed the pod; whether it was to be in a place. */
bool failed_places_note(GPtrArray *places, const struct allocation *allocation);
/* kubelet has admitted the pod: where it is an instance can be made. Whether anything was known of that. */
bool failed_places_note_start(GPtrArray *places, const struct allocation *allocation);
/* A decision is made. Whether anything has changed. */
bool failed_places_settle(GPtrArray *places, int64_t now_ms);

/* Leaves them out on a what-if node, for pods of the namespace; whether there are any. */
bool failed_places_concern(const GPtrArray *places, const char *ns, int32_t card);
void failed_places_leave_out(const GPtrArray *places, const char *ns, struct card *card);

/* [{"namespace":"ml","card":0,"layout":0,"start":0,"size":1,"until":MS}] */
void failed_places_encode(struct json_writer *writer, const GPtrArray *places);
bool failed_places_decode(GPtrArray *places, struct json_arena *arena, const cJSON *list,
                          int64_t time_max, GError **error);

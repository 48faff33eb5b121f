/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Room on a Node that is given back to a pod whose namespace is sure of it: who it is for, since when, and
 * whose end makes it. Kept in a ConfigMap (wire/claim_sheet.h), so that every replica knows it and a restart forgets
 * nothing. The Node's annotation shows it to people:
 *
 *   gpuledger.io/reclaim: '[{"for":"UID","namespace":"ml","group":"ml/train","since":1764100000,"card":3,
 *                            "ends":["UID","UID"]}]'
 *
 * Kubelet may write there what it likes, so nobody ends by it. A claim counts for CLAIM_MS, whatever becomes of
 * whoever wrote it.
 *
 * A claim that has ended leaves one for "over UID", which is no pod and keeps no room, while those that were evicted
 * for it count in the minute of whoever takes over.
 */
#include "json/json.h"

#include <gpuledger/ledger.h>
#include <stdbool.h>
#include <stdint.h>

#define CLAIM_KEY "gpuledger.io/reclaim"
#define CLAIM_MS INT64_C(600000)
#define CLAIMS_MAX 64     /* of a Node */
#define CLAIM_ENDS_MAX 64 /* pods that end for one */

/* The strings are the claim's own. */
struct room_claim {
    char *uid;
    int64_t since_s; /* Unix time */
    int32_t card;    /* that the pod is to have a share of; CARD_UNKNOWN: several, or not known */
    char **ends;     /* UIDs, NULL at the end */
    char *ns;        /* the pod's; NULL: the claim does not say it */
    char *group;     /* "NAMESPACE/NAME" of the group that the pod comes with, or NULL */
};

/* Without namespace and group. */
struct room_claim *claim_new(const char *uid, int64_t since_s, int32_t card,
                             const char *const *ends);
struct room_claim *claim_dup(const struct room_claim *claim);
struct room_claim *claim_over(const struct room_claim *claim, const char *const *ends);
bool claim_is_over(const struct room_claim *claim);
void claim_free(struct room_claim *claim); /* NULL is ignored */

/* Whether it still counts; one of the future does not. */
bool claim_counts(const struct room_claim *claim, int64_t now_ns);
bool claim_names(const struct room_claim *claim, const char *uid); /* among those that end */

/* None. */
GPtrArray *claims_new(void);
/* As a part of something else. NULL, with an error: they cannot be read, or are too many. */
GPtrArray *claims_read_array(struct json_arena *arena, const cJSON *array, GError **error);
void claims_write(struct json_writer *writer, const GPtrArray *claims);

/* The annotation's text; NULL: there is none. An array of struct room_claim *, which it owns; NULL, with an
 * error: it cannot be read, or has too many. */
GPtrArray *claims_decode(const char *text, GError **error);
char *claims_encode(const GPtrArray *claims); /* NULL: none. Free with g_free. */

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All claims (wire/claim.h), and the namespaces to which nothing is given back for a while, as one ConfigMap of
 * gpuledger's namespace has them. Pods end by what it says, so nobody else writes it:
 *
 *   metadata: {name: gpuledger-claims}
 *   data:
 *     claims: '{"nodes":{"n1":[{"for":"UID","namespace":"ml","since":1764100000,"ends":["UID"]}]},
 *               "pauses":{"ml":{"until":1764100600,"seconds":60}}}'
 *     sum: SHA-256 of that text
 *
 * What has another sum was changed by somebody else, and is not believed. The sum is no proof: whoever may write
 * there can make one.
 */
#include "json/json.h"
#include "wire/claim.h"

#define CLAIM_SHEET_NAME "gpuledger-claims"
#define CLAIM_SHEET_MAX ((gsize)768 << 10) /* bytes of its text; a ConfigMap takes 1 MiB */
#define CLAIM_SHEET_NAMESPACE_MAX 256      /* claims of one namespace */
#define CLAIM_PAUSES_MAX 1024

/* Until when nothing is given back to a namespace, and for how long that was; Unix time. */
struct claim_pause {
    int64_t until_s, last_s;
};

struct claim_sheet {
    GHashTable *nodes;  /* name -> GPtrArray of struct room_claim *, none of them empty */
    GHashTable *pauses; /* namespace -> struct claim_pause * */
};

struct claim_sheet *claim_sheet_new(void);
struct claim_sheet *claim_sheet_dup(const struct claim_sheet *sheet);
void claim_sheet_free(struct claim_sheet *sheet); /* NULL is ignored */
typedef struct claim_sheet claim_sheet;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(claim_sheet, claim_sheet_free)

/* Those on the node, or NULL. */
const GPtrArray *claim_sheet_on(const struct claim_sheet *sheet, const char *node);
/* In place of that of the same pod there. */
void claim_sheet_add(struct claim_sheet *sheet, const char *node, struct room_claim *take_claim);
void claim_sheet_remove(struct claim_sheet *sheet, const char *node, const char *uid);
/* In place of that of the namespace. */
void claim_sheet_pause(struct claim_sheet *sheet, const char *ns, const struct claim_pause *pause);

/* Its text: the nodes and namespaces in the order of their names. Free with g_free. */
char *claim_sheet_encode(const struct claim_sheet *sheet);
char *claim_sheet_sum(const char *text); /* free with g_free */

/* False, with an error: it has more than may be kept. `text` is the sheet's. */
bool claim_sheet_fits(const struct claim_sheet *sheet, const char *text, GError **error);

/* NULL, with an error: it cannot be read, has more than may be kept, or the sum is another. */
struct claim_sheet *claim_sheet_read(const char *text, const char *sum, GError **error);
/* The same of the object alone, as a record has it. */
struct claim_sheet *claim_sheet_decode(struct json_arena *arena, const cJSON *object,
                                       GError **error);

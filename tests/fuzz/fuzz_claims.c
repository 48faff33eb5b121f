/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Node's annotation of claims is refused with a message, or read as claims within their bounds, which are
 * the same when they are written and read again, and keep room for nobody for longer than they may.
 */
#include "target.h"

#include "wire/claim.h"

#include <string.h>

#define SECOND INT64_C(1000000000)

static void check_claim(const struct room_claim *claim)
{
    const int64_t since_ns = claim->since_s * SECOND;

    FUZZ_CHECK(claim->uid && *claim->uid);
    FUZZ_CHECK(claim->card >= CARD_UNKNOWN && claim->card < NODE_CARDS_MAX);
    FUZZ_CHECK(claim->since_s >= 0 && since_ns / SECOND == claim->since_s);
    FUZZ_CHECK(claim_counts(claim, since_ns));
    FUZZ_CHECK(!claim_counts(claim, since_ns + CLAIM_MS * (SECOND / 1000)));
    FUZZ_CHECK(g_strv_length(claim->ends) <= CLAIM_ENDS_MAX);
    for (char **uid = claim->ends; *uid; uid++)
        FUZZ_CHECK(claim_names(claim, *uid));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) claims = claims_decode(text, &error);

    FUZZ_CHECK(!claims == !!error);
    if (!claims)
        return 0;
    FUZZ_CHECK(claims->len <= CLAIMS_MAX);
    for (guint i = 0; i < claims->len; i++)
        check_claim(claims->pdata[i]);
    g_autofree char *written = claims_encode(claims);
    g_autoptr(GPtrArray) again = claims_decode(written, NULL);
    FUZZ_CHECK(again && again->len == claims->len);
    g_autofree char *twice = claims_encode(again);
    FUZZ_CHECK(g_strcmp0(written, twice) == 0);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <check.h>
#include <gpuledger/ledger.h>

/* The end of a test: whatever it did, usage is the sum of its parts. */
static inline void ledger_end(struct ledger *ledger)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(ledger, &error), "%s", error ? error->message : "");
    ledger_free(ledger);
}

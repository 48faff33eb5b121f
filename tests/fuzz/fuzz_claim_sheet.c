/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ConfigMap of claims says is refused with a message, or read as claims and pauses that are the same when
 * they are written and read again.
 */
#include "target.h"

#include "wire/claim_sheet.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size), *sum = claim_sheet_sum(text);
    g_autoptr(GError) error = NULL;
    g_autoptr(claim_sheet) sheet = claim_sheet_read(text, sum, &error);

    FUZZ_CHECK(!sheet == !!error);
    g_autoptr(claim_sheet) unbelieved = claim_sheet_read(text, "", NULL);
    FUZZ_CHECK(!unbelieved);
    if (!sheet)
        return 0;
    FUZZ_CHECK(g_hash_table_size(sheet->pauses) <= CLAIM_PAUSES_MAX);
    g_autoptr(claim_sheet) copy = claim_sheet_dup(sheet);
    g_autofree char *written = claim_sheet_encode(copy), *again = claim_sheet_sum(written);
    if (!claim_sheet_fits(copy, written, NULL))
        return 0;
    g_autoptr(claim_sheet) read = claim_sheet_read(written, again, NULL);
    FUZZ_CHECK(read);
    g_autofree char *twice = claim_sheet_encode(read);
    FUZZ_CHECK(g_str_equal(written, twice));
    return 0;
}

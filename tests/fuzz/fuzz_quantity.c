/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is either refused with a message that quotes it, or is a number that is the same number
 * when it is written in another way.
 */
#include "target.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

static bool parse(bool (*parser)(const char *, int64_t *, GError **), const char *text,
                  int64_t *ret_value)
{
    g_autoptr(GError) error = NULL;
    bool parsed = parser(text, ret_value, &error);

    FUZZ_CHECK(parsed == !error);
    if (parsed)
        FUZZ_CHECK(*ret_value >= 0);
    else
        FUZZ_CHECK(error->domain == GPULEDGER_ERROR && strstr(error->message, "quantity '"));
    return parsed;
}

static void check_whole(int64_t value)
{
    char *forms[] = {
        g_strdup_printf("%" G_GINT64_FORMAT, value),
        g_strdup_printf("+%" G_GINT64_FORMAT "e0", value),
        g_strdup_printf("0%" G_GINT64_FORMAT ".0", value),
        g_strdup_printf("%" G_GINT64_FORMAT "000m", value),
    };

    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        int64_t again = -1;
        FUZZ_CHECK(parse(quantity_parse, forms[i], &again) && again == value);
        g_free(forms[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    int64_t whole = -1, thousandths = -1;
    bool is_whole = parse(quantity_parse, text, &whole);
    bool is_thousandths = parse(quantity_parse_thousandths, text, &thousandths);

    if (is_whole) {
        check_whole(whole);
        FUZZ_CHECK(is_thousandths == (whole <= INT64_MAX / 1000));
        if (is_thousandths)
            FUZZ_CHECK(thousandths == whole * 1000);
    } else if (is_thousandths) {
        FUZZ_CHECK(thousandths > 0);
    }
    return 0;
}

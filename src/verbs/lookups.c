/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/lookups.h"

#define TOKEN 1000

static const struct {
    int64_t burst, per_s;
} rates[LOOKUPS_N] = {
    [LOOKUPS_STRANGER] = {LOOKUPS_STRANGER_BURST, LOOKUPS_STRANGER_PER_S},
    [LOOKUPS_FILTERED] = {LOOKUPS_FILTERED_BURST, LOOKUPS_FILTERED_PER_S},
};

bool lookups_take(struct lookups *lookups, enum lookups_for whom, int64_t now_ms)
{
    int64_t *missing = &lookups->buckets[whom].missing, *at_ms = &lookups->buckets[whom].at_ms;
    const int64_t full_ms = rates[whom].burst * TOKEN / rates[whom].per_s;
    const int64_t passed_ms = now_ms - *at_ms;

    /* A token is a thousand, and a second as many milliseconds. */
    if (passed_ms >= full_ms)
        *missing = 0;
    else if (passed_ms > 0)
        *missing -= passed_ms * rates[whom].per_s;
    *missing = *missing < 0 ? 0 : *missing;
    *at_ms = now_ms;
    if (*missing + TOKEN > rates[whom].burst * TOKEN)
        return false;
    *missing += TOKEN;
    return true;
}

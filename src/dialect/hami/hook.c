/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/hami/hook.h"

#include <string.h>

/* What Go's strconv.ParseBool takes for true. */
static bool is_true(const char *value)
{
    static const char *const words[] = {"1", "t", "T", "true", "TRUE", "True"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0)
            return true;
    }
    return false;
}

enum hook_word hook_word_of(const char *name, const char *value)
{
    if (strcmp(name, HOOK_VARIABLE) != 0)
        return HOOK_UNSAID;
    return value && is_true(value) ? HOOK_OFF : HOOK_NAMED;
}

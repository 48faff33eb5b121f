/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sums of what pods ask for and hold. One pod counts no more than SHARE_AMOUNT_MAX (quota/share_amounts.h), but
 * there may be any number of them. So that no pod, whatever it asks for, changes what others may have, sums from
 * which something is taken off again are exact, and others stop at a maximum.
 */
#include <glib.h>
#include <stdint.h>

/* An exact one. */
typedef __int128 amount_sum;

/* Of one in 64 bits; a few of them can be added up. */
#define AMOUNT_SUM_MAX (INT64_MAX / 8)

static inline int64_t amount_sum_told(amount_sum sum)
{
    return (int64_t)CLAMP(sum, -AMOUNT_SUM_MAX, AMOUNT_SUM_MAX);
}

static inline int64_t amount_add(int64_t amount, int64_t other)
{
    return amount_sum_told((amount_sum)amount + other);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What pods would count towards quotas where they were placed, by number, so that what filter remembers of a node
 * (queue/books/verdicts.h) is enough to judge by quotas of every kind. Equal ones have one number, and numbers are
 * not given twice. Guarded by the store's lock.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define QUOTA_WANT_KEYS 32 /* of elastic quotas */
#define QUOTA_WANT_UNITS 2

struct quota_want {
    const char *model, *pool; /* of the node: reference-counted strings, interned, or NULL */
    const char *key;          /* static: whose units they are, or NULL */
    int64_t gpus;
    int64_t units[QUOTA_WANT_UNITS];
    int64_t amounts[QUOTA_WANT_KEYS]; /* by key of elastic quotas, as they were in that round */
};

struct quota_wants;

struct quota_wants *quota_wants_new(void);
void quota_wants_free(struct quota_wants *wants);

/* Not 0. All padding of the want is zero. Another round than that of the last: all former numbers are forgotten. */
uint64_t quota_wants_number(struct quota_wants *wants, const struct quota_want *want,
                            uint64_t round);
/* NULL: it is forgotten. */
const struct quota_want *quota_wants_get(const struct quota_wants *wants, uint64_t number,
                                         uint64_t round);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How well each two cards of a node are connected, as its node side tells: a number for each pair,
 * more is better. Immutable once made, shared by reference.
 */
#include <gpuledger/names.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

#define LINKS_CARDS_MAX 64

struct links {
    int32_t n; /* cards */
    uint16_t between[]; /* n × n, the same both ways */
};

/* All 0, with one reference; the maker fills it before it gives it away. At most LINKS_CARDS_MAX. */
struct links *links_new(int32_t n);
struct links *links_ref(struct links *links); /* NULL gives NULL */
void links_unref(struct links *links);        /* NULL is ignored */

void links_set(struct links *links, int32_t one, int32_t other, uint16_t score);
int32_t links_between(const struct links *links, int32_t one, int32_t other);

/* Of n cards, each below links->n, the `count` whose pairs have the highest sum; the one whose pairs
 * with the others have the lowest, if it is one. Among equals the earlier ones. Where there are more
 * sets than can be looked at, the best of the first so many. `count` is from 1 to n; `ret_chosen` gets
 * places in `cards`, in order. */
void links_choose(const struct links *links, const int32_t *cards, int32_t n, int32_t count,
                  int32_t *ret_chosen);

#pragma GCC visibility pop

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a piece of a card is worth when pieces of many sizes are wanted and cards are to be cut as
 * well as can be: the dual of the cutting-stock problem.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUTTING_SIZES_MAX 64

struct piece {
    int32_t size;  /* 0 to `whole` */
    double wanted; /* how often */
    double weight; /* the answer, in cards */
    int32_t other; /* what it takes of something else that cards have; 0 to `other` */
};

/* Sets the weights so that `sum of wanted * weight` is as large as it can be while no set of pieces
 * that fits one card weighs more than 1. Pieces differ, none is nothing, and they are in order of
 * size; at most CUTTING_SIZES_MAX. `other` 0: cards have nothing else. */
void cutting_weigh(struct piece *pieces, size_t n, int32_t whole, int32_t other);

/* The most that pieces within each size from 0 to `whole` can weigh; for each size, within each from
 * 0 to `other`. */
void cutting_worth(const struct piece *pieces, size_t n, int32_t whole, int32_t other,
                   float *ret_worth);

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
 * that fits one card weighs more than 1. Pieces differ and none is nothing; at most
 * CUTTING_SIZES_MAX. `other` 0: cards have nothing else. */
void cutting_weigh(struct piece *pieces, size_t n, int32_t whole, int32_t other);

#define CUTTING_STOCKS_MAX 64

struct cut {
    int32_t size, other; /* as of a piece; both 0: no such card will do for it */
};

/* Cards of which pieces take the same. */
struct stock {
    int32_t whole, other;   /* as for cutting_weigh */
    double cards;           /* how many; more than 0 */
    const struct cut *cuts; /* by piece; borrowed */
    double price;           /* the answer: what such a card is worth */
};

/* The same where there are cards of several stocks, and a piece weighs the same whichever it is cut from:
 * no set that fits a card weighs more than the card's price, and the mean price of all cards is 1. Of
 * pieces, size and other are not read. Each fits some stock, of which there is one at least. */
void cutting_weigh_stocks(struct piece *pieces, size_t n, struct stock *stocks, size_t n_stocks);

/* The most that pieces within each size from 0 to `whole` can weigh; for each size, within each from
 * 0 to `other`. */
void cutting_worth(const struct piece *pieces, size_t n, int32_t whole, int32_t other,
                   float *ret_worth);

/* The same, in the mean, if no more than so many pieces are offered one after the other, each as often as
 * it is wanted: one that never comes is worth nothing. Weights and `wanted` are read. */
void cutting_worth_of_offers(const struct piece *pieces, size_t n, int32_t whole, int32_t other,
                             int offers, float *ret_worth);

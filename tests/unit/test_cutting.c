/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/cutting.h"

#include "suite.h"

#include <glib.h>
#include <math.h>

#define WHOLE 1000
#define ANY (-1) /* more than one answer is right */

/* How often each size was asked for in a public trace of some 8,000 pods, and what it must weigh. */
static const struct expected {
    int32_t size;
    double wanted, weight;
} trace[] = {
    {50, 7, 0},      {110, 24, 0},      {140, 1, 0},       {160, 74, 0},
    {220, 62, ANY},  {230, 140, .25},   {270, 4, .25},     {290, 1, .25},
    {320, 328, .333}, {330, 7, .333},   {350, 6, .333},    {370, 47, .333},
    {440, 2, ANY},  {460, 128, .5},    {470, 750, .5},    {480, 19, .5},     {550, 72, ANY},
    {590, 75, .667}, {650, 253, .667},  {810, 1078, 1},    {1000, 4355, 1},
};

START_TEST(weighs_the_sizes_of_a_trace)
{
    struct piece pieces[G_N_ELEMENTS(trace)];
    float worth[WHOLE + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(trace); i++)
        pieces[i] = (struct piece){.size = trace[i].size, .wanted = trace[i].wanted};
    cutting_weigh(pieces, G_N_ELEMENTS(trace), WHOLE, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(trace); i++)
        ck_assert_msg(trace[i].weight == ANY || fabs(pieces[i].weight - trace[i].weight) < 0.001,
                      "%d weighs %f", pieces[i].size, pieces[i].weight);
    cutting_worth(pieces, G_N_ELEMENTS(trace), WHOLE, 0, worth);
    ck_assert_float_eq_tol(worth[190], 0, 1e-6F);
    ck_assert_float_eq_tol(worth[460], 0.5F, 1e-6F);
    ck_assert_float_eq_tol(worth[WHOLE], 1, 1e-6F);
}
END_TEST

static double value(const struct piece *pieces, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += pieces[i].wanted * pieces[i].weight;
    return sum;
}

START_TEST(finds_the_fewest_cards)
{
    /* Two of 400 and one of 200 fill a card; what is left of 600 goes with them. */
    struct piece exact[] = {{200, 10, 0}, {400, 20, 0}};
    struct piece pairs[] = {{400, 10, 0}, {600, 10, 0}};
    struct piece scarce[] = {{400, 2, 0}, {600, 10, 0}};
    struct piece alone[] = {{501, 7, 0}};

    cutting_weigh(exact, 2, WHOLE, 0);
    ck_assert_double_eq_tol(value(exact, 2), 10, 1e-9);
    cutting_weigh(pairs, 2, WHOLE, 0);
    ck_assert_double_eq_tol(value(pairs, 2), 10, 1e-9);
    cutting_weigh(scarce, 2, WHOLE, 0);
    ck_assert_double_eq_tol(value(scarce, 2), 10, 1e-9);
    ck_assert_double_eq_tol(scarce[0].weight, 0, 1e-9); /* there is more room for it than needed */
    cutting_weigh(alone, 1, WHOLE, 0);
    ck_assert_double_eq_tol(alone[0].weight, 1, 1e-9);
    cutting_weigh(alone, 0, WHOLE, 0);
}
END_TEST

START_TEST(two_things_of_a_card_are_cut_together)
{
    /* By its larger part each fills a card alone; one of each go together. */
    struct piece crossed[] = {{.size = 2, .other = 6, .wanted = 10},
                              {.size = 7, .other = 3, .wanted = 10}};
    struct piece beside[] = {{.size = 0, .other = 5, .wanted = 4},
                             {.size = 5, .other = 0, .wanted = 4}};
    float worth[11 * 11];

    cutting_weigh(crossed, 2, 10, 10);
    ck_assert_double_eq_tol(value(crossed, 2), 10, 1e-9);
    crossed[0].weight = 0.75;
    crossed[1].weight = 0.25;
    cutting_worth(crossed, 2, 10, 10, worth);
    ck_assert_float_eq_tol(worth[10 * 11 + 10], 1, 1e-6F);
    ck_assert_float_eq_tol(worth[10 * 11 + 8], 0.75F, 1e-6F);
    ck_assert_float_eq_tol(worth[8 * 11 + 10], 0.75F, 1e-6F);
    ck_assert_float_eq_tol(worth[7 * 11 + 5], 0.25F, 1e-6F);
    ck_assert_float_eq_tol(worth[6 * 11 + 5], 0, 1e-6F);
    cutting_weigh(beside, 2, 10, 10);
    ck_assert_double_eq_tol(value(beside, 2), 2, 1e-9);
}
END_TEST

static double mean_price(const struct stock *stocks, size_t n)
{
    double sum = 0, cards = 0;

    for (size_t k = 0; k < n; k++) {
        sum += stocks[k].price * stocks[k].cards;
        cards += stocks[k].cards;
    }
    return sum / cards;
}

START_TEST(a_piece_weighs_the_same_of_large_cards_and_of_small_ones)
{
    /* A large card holds four of the one piece, or one and the other; a small card one of the one. */
    static const struct cut large[] = {{250, 0}, {600, 0}}, small[] = {{1000, 0}, {0, 0}};
    struct piece pieces[] = {{.wanted = 100}, {.wanted = 1}};
    struct stock stocks[2];
    const int l = _i, s = 1 - _i; /* in either order */

    stocks[l] = (struct stock){WHOLE, 0, 10, large, 0};
    stocks[s] = (struct stock){WHOLE, 0, 30, small, 0};
    cutting_weigh_stocks(pieces, 2, stocks, 2);
    ck_assert_double_eq_tol(pieces[0].weight, 4.0 / 7, 1e-9); /* 10 * 4 + 30 * 1 for 40 cards */
    ck_assert_double_eq_tol(stocks[l].price, 16.0 / 7, 1e-9);
    ck_assert_double_eq_tol(stocks[s].price, 4.0 / 7, 1e-9);
    /* If none but large cards are short, they alone cost something. */
    pieces[0].wanted = 1;
    pieces[1].wanted = 100;
    cutting_weigh_stocks(pieces, 2, stocks, 2);
    ck_assert_double_eq_tol(pieces[0].weight, 0, 1e-9);
    ck_assert_double_eq_tol(stocks[l].price, 4, 1e-9);
    ck_assert_double_eq_tol(stocks[s].price, 0, 1e-9);
}
END_TEST

START_TEST(what_rarely_comes_is_worth_less)
{
    /* Three in four fill half of a card, the others the rest of it or all. */
    static const struct piece pieces[] = {{.size = 2, .wanted = 3, .weight = 0.5},
                                          {.size = 4, .wanted = 1, .weight = 1}};
    float worth[5];

    cutting_worth_of_offers(pieces, 2, 4, 0, 1, worth);
    ck_assert_float_eq_tol(worth[1], 0, 1e-6F);
    ck_assert_float_eq_tol(worth[2], 0.375F, 1e-6F);
    ck_assert_float_eq_tol(worth[3], 0.375F, 1e-6F);
    ck_assert_float_eq_tol(worth[4], 0.625F, 1e-6F);
    /* Of two, the second: 3/4 * (0.5 + 0.375 - 0.625) + 1/4 * (1 - 0.625) more. */
    cutting_worth_of_offers(pieces, 2, 4, 0, 2, worth);
    ck_assert_float_eq_tol(worth[2], 0.46875F, 1e-6F);
    ck_assert_float_eq_tol(worth[4], 0.90625F, 1e-6F);
    cutting_worth_of_offers(pieces, 2, 4, 0, 100, worth);
    ck_assert_float_eq_tol(worth[2], 0.5F, 1e-6F);
    ck_assert_float_eq_tol(worth[4], 1, 1e-6F);
}
END_TEST

/* A small generator of its own, so that a failure can be repeated. */
static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525U + 1013904223U;
    return (*state >> 8) % below;
}

/* Whatever is wanted: no set that fits a card weighs more than it, more room is never worth less, and
 * the same question has the same answer. */
START_TEST(no_set_that_fits_weighs_more_than_a_card)
{
    uint32_t state = (uint32_t)_i + 1;
    struct piece pieces[CUTTING_SIZES_MAX], again[CUTTING_SIZES_MAX];
    const size_t n = 1 + draw(&state, CUTTING_SIZES_MAX);
    float worth[WHOLE + 1];

    for (size_t i = 0; i < n; i++)
        again[i] = pieces[i] =
            (struct piece){.size = (int32_t)(i * 15 + 1 + draw(&state, 15)),
                           .wanted = draw(&state, 10) ? draw(&state, 1000) : 0};
    cutting_weigh(pieces, n, WHOLE, 0);
    cutting_weigh(again, n, WHOLE, 0);
    cutting_worth(pieces, n, WHOLE, 0, worth);
    ck_assert_msg(worth[WHOLE] <= 1.0001F, "%f", (double)worth[WHOLE]);
    for (int32_t room = 1; room <= WHOLE; room++)
        ck_assert(worth[room] >= worth[room - 1]);
    for (size_t i = 0; i < n; i++) {
        ck_assert(pieces[i].weight >= 0);
        ck_assert(pieces[i].weight == again[i].weight);
    }
}
END_TEST

START_TEST(no_set_of_two_things_weighs_more_than_a_card)
{
    uint32_t state = (uint32_t)_i + 1;
    struct piece pieces[CUTTING_SIZES_MAX];
    const size_t n = 1 + draw(&state, CUTTING_SIZES_MAX);
    const int32_t row = 51;
    float worth[51 * 51];

    for (size_t i = 0; i < n; i++)
        pieces[i] = (struct piece){.size = (int32_t)(i * 50 / CUTTING_SIZES_MAX),
                                   .other = (int32_t)(1 + i % 2 * 25 + draw(&state, 25)),
                                   .wanted = draw(&state, 10) ? draw(&state, 1000) : 0};
    cutting_weigh(pieces, n, 50, 50);
    cutting_worth(pieces, n, 50, 50, worth);
    ck_assert_msg(worth[51 * 51 - 1] <= 1.0001F, "%f", (double)worth[51 * 51 - 1]);
    for (int32_t room = 0; room < 51 * 51; room++) {
        ck_assert(room < row || worth[room] >= worth[room - row]);
        ck_assert(room % row == 0 || worth[room] >= worth[room - 1]);
    }
}
END_TEST

enum { MIXED = 20, STOCKS = 3, STEPS = 40 };

/* Of three stocks, of which some do not do for some pieces. */
struct mixed {
    struct piece pieces[MIXED];
    struct cut cuts[STOCKS][MIXED];
    struct stock stocks[STOCKS];
};

static void draw_mixed(struct mixed *mixed, uint32_t *state, int32_t other)
{
    *mixed = (struct mixed){0};
    for (size_t i = 0; i < MIXED; i++) {
        const int32_t size = (int32_t)(1 + draw(state, STEPS)),
                      beside = (int32_t)draw(state, STEPS);
        mixed->pieces[i].wanted = draw(state, 1000);
        for (size_t k = 0; k < STOCKS; k++) {
            mixed->cuts[k][i] =
                (struct cut){MAX(size * (int32_t)(k + 1) / STOCKS, 1), other ? beside : 0};
            if (k < 2 && draw(state, 4) == 0)
                mixed->cuts[k][i] = (struct cut){0};
        }
    }
    for (size_t k = 0; k < STOCKS; k++)
        mixed->stocks[k] = (struct stock){STEPS, other, 1 + draw(state, 100), mixed->cuts[k], 0};
}

/* The most that fits a card of the stock. */
static double heaviest(const struct mixed *mixed, size_t k)
{
    const struct stock *stock = &mixed->stocks[k];
    float worth[(STEPS + 1) * (STEPS + 1)];
    struct piece own[MIXED];
    size_t n = 0;

    for (size_t i = 0; i < MIXED; i++) {
        if (stock->cuts[i].size > 0)
            own[n++] = (struct piece){.size = stock->cuts[i].size,
                                      .other = stock->cuts[i].other,
                                      .weight = mixed->pieces[i].weight};
    }
    cutting_worth(own, n, stock->whole, stock->other, worth);
    return (double)worth[(STEPS + 1) * (stock->other + 1) - 1];
}

/* What all pieces weigh, if the mean card is worth 1. */
static double value_of(const struct mixed *mixed)
{
    double worth = 0, cards = 0;

    for (size_t k = 0; k < STOCKS; k++) {
        worth += mixed->stocks[k].cards * heaviest(mixed, k);
        cards += mixed->stocks[k].cards;
    }
    return value(mixed->pieces, MIXED) / worth * cards;
}

/* No set that fits a card weighs more than its price, the mean card costs 1, no other weights come to more,
 * and the same question has the same answer. */
START_TEST(no_set_weighs_more_than_its_card_costs)
{
    uint32_t state = (uint32_t)_i + 1;
    struct mixed mixed, again;

    draw_mixed(&mixed, &state, _i % 2 ? STEPS : 0);
    again = mixed;
    for (size_t k = 0; k < STOCKS; k++)
        again.stocks[k].cuts = again.cuts[k];
    cutting_weigh_stocks(mixed.pieces, MIXED, mixed.stocks, STOCKS);
    cutting_weigh_stocks(again.pieces, MIXED, again.stocks, STOCKS);
    ck_assert_double_eq_tol(mean_price(mixed.stocks, STOCKS), 1, 1e-9);
    for (size_t k = 0; k < STOCKS; k++)
        ck_assert_double_le(heaviest(&mixed, k), mixed.stocks[k].price + 1e-4);
    const double most = value_of(&mixed);
    for (size_t i = 0; i < MIXED; i++) {
        ck_assert(mixed.pieces[i].weight >= 0 && mixed.pieces[i].weight == again.pieces[i].weight);
        again.pieces[i].weight = mixed.pieces[i].weight + 0.05;
        ck_assert_double_le(value_of(&again), most * 1.0001);
        again.pieces[i].weight = MAX(mixed.pieces[i].weight - 0.05, 0);
        ck_assert_double_le(value_of(&again), most * 1.0001);
        again.pieces[i].weight = mixed.pieces[i].weight;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cutting");
    TCase *tests = tcase_create("cutting");

    tcase_add_test(tests, weighs_the_sizes_of_a_trace);
    tcase_add_test(tests, finds_the_fewest_cards);
    tcase_add_test(tests, two_things_of_a_card_are_cut_together);
    tcase_add_loop_test(tests, a_piece_weighs_the_same_of_large_cards_and_of_small_ones, 0, 2);
    tcase_add_test(tests, what_rarely_comes_is_worth_less);
    tcase_add_loop_test(tests, no_set_weighs_more_than_its_card_costs, 0, 60);
    tcase_add_loop_test(tests, no_set_of_two_things_weighs_more_than_a_card, 0, 60);
    tcase_add_loop_test(tests, no_set_that_fits_weighs_more_than_a_card, 0, 60);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gilmore and Gomory's column generation. The primal problem: as small a part of all cards as possible,
 * the same of each stock, each card cut by some pattern, that yields each piece as often as it is wanted.
 * Of its patterns, which are too many to list, only those of the current basis are known; the next one
 * is the best filling of a card at the current weights, found by a knapsack. When no filling of any
 * stock weighs more than such a card costs the weights are the answer.
 *
 *   primal: least N * t  with, for each i, sum over k and p of a[k,i,p] * x[k,p] >= d[i]
 *                        and, for each k,  sum over p of x[k,p] <= t * n[k]
 *   dual:   greatest sum over i of d[i] * w[i]
 *                        with, for each k and p, sum over i of a[k,i,p] * w[i] <= c[k]
 *                        and sum over k of n[k] * c[k] = N
 *
 *   i       a piece; d[i], how often it is wanted (piece.wanted); w[i], its weight, in cards
 *   k       a stock; n[k], its cards (stock.cards), N of all; c[k], what one costs (stock.price)
 *   p       a pattern; a[k,i,p], how often it has the piece; x[k,p], how many cards of k it cuts
 *   t       what is cut of all cards, as a part of them; above 1, if they do not suffice
 *   B       the basis: as many columns as there are rows, of pieces and then of stocks: t's, those of
 *           patterns, and of what throws a piece or a card away; with its inverse, model.inverse:
 *           x and t (model.level) = inverse * (d, 0), and (w, c) (model.weights) = N * the row of t
 */
#include "policy/cutting.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More are not worth the time: what is reached by then is scaled until it holds. */
#define ROUNDS_MAX 512
#define EPSILON 1e-9

#define ROWS_MAX (CUTTING_SIZES_MAX + CUTTING_STOCKS_MAX)

/* Sizes, and these, are divided by what divides them all. */
struct blank {
    int32_t whole, other;
    double cards;
    int32_t sizes[CUTTING_SIZES_MAX], others[CUTTING_SIZES_MAX]; /* both 0: it does not fit */
};

struct model {
    size_t n, n_blanks, rows;
    double cards; /* of all blanks */
    struct blank blanks[CUTTING_STOCKS_MAX];
    double inverse[ROWS_MAX][ROWS_MAX]; /* of the basis */
    double level[ROWS_MAX];             /* by column of the basis */
    size_t used;                        /* the column that says how much of all cards is cut */
    double weights[ROWS_MAX];           /* of pieces, then of cards */
    size_t next;                        /* which blank is filled first for the next pattern */
};

static int32_t divisor(int32_t a, int32_t b)
{
    while (b > 0) {
        const int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void blank_init(struct blank *blank, const struct stock *stock, size_t n)
{
    int32_t common = stock->whole, common_other = stock->other;

    for (size_t i = 0; i < n; i++) {
        common = divisor(common, stock->cuts[i].size);
        common_other = divisor(common_other, stock->cuts[i].other);
    }
    blank->cards = stock->cards;
    blank->whole = stock->whole / common;
    blank->other = stock->other > 0 ? stock->other / common_other : 0;
    for (size_t i = 0; i < n; i++) {
        blank->sizes[i] = stock->cuts[i].size / common;
        blank->others[i] = stock->other > 0 ? stock->cuts[i].other / common_other : 0;
    }
}

static bool fits(const struct blank *blank, size_t i)
{
    return blank->sizes[i] > 0 || blank->others[i] > 0;
}

/* How often a card has room for the piece. */
static int32_t times(const struct blank *blank, size_t i)
{
    int32_t most = INT32_MAX;

    if (!fits(blank, i))
        return 0;
    if (blank->sizes[i] > 0)
        most = blank->whole / blank->sizes[i];
    if (blank->others[i] > 0)
        most = MIN(most, blank->other / blank->others[i]);
    return most;
}

/* Where it takes least of all cards beside those that are cut there already. */
static size_t find_home(const struct model *model, size_t i, double wanted, const double *cut)
{
    size_t home = 0;
    double least = INFINITY;

    for (size_t k = 0; k < model->n_blanks; k++) {
        const struct blank *blank = &model->blanks[k];
        const int32_t most = times(blank, i);
        const double part = most > 0 ? (cut[k] + wanted / most) / blank->cards : INFINITY;
        if (part < least) {
            least = part;
            home = k;
        }
    }
    return home;
}

/* The rows of the blanks. Of the one of which most is cut nothing is left; of others, some cards are
 * thrown away. `homes`: by piece. */
static void set_rows(struct model *model, const size_t *homes, const double *cut)
{
    const struct blank *blanks = model->blanks;
    size_t most = 0;

    for (size_t k = 1; k < model->n_blanks; k++) {
        if (cut[k] / blanks[k].cards > cut[most] / blanks[most].cards)
            most = k;
    }
    model->used = model->n + most;
    for (size_t k = 0; k < model->n_blanks; k++) {
        double *row = model->inverse[model->n + k];
        const double each = (k == most ? 1 : blanks[k].cards) / blanks[most].cards;
        for (size_t i = 0; i < model->n; i++) {
            const double cards = model->inverse[i][i];
            row[i] =
                (homes[i] == most ? each * cards : 0) - (k != most && homes[i] == k ? cards : 0);
        }
        row[model->used] = each;
        if (k != most)
            row[model->n + k] = -1;
        model->level[model->n + k] = MAX(each * cut[most] - (k == most ? 0 : cut[k]), 0);
    }
}

/* Each piece alone, as often as it fits, of one blank. */
static void model_init(struct model *model, const struct piece *pieces, size_t n,
                       const struct stock *stocks, size_t n_stocks)
{
    size_t homes[CUTTING_SIZES_MAX];
    double cut[CUTTING_STOCKS_MAX] = {0};

    model->n = n;
    model->n_blanks = n_stocks;
    model->rows = n + n_stocks;
    model->cards = 0;
    model->next = 0;
    for (size_t k = 0; k < n_stocks; k++) {
        blank_init(&model->blanks[k], &stocks[k], n);
        model->cards += stocks[k].cards;
    }
    for (size_t i = 0; i < model->rows; i++)
        memset(model->inverse[i], 0, model->rows * sizeof **model->inverse);
    for (size_t i = 0; i < n; i++) {
        homes[i] = find_home(model, i, pieces[i].wanted, cut);
        const int32_t most = times(&model->blanks[homes[i]], i);
        g_assert(most > 0);
        model->inverse[i][i] = 1.0 / most;
        model->level[i] = pieces[i].wanted / most;
        cut[homes[i]] += model->level[i];
    }
    set_rows(model, homes, cut);
}

static void set_weights(struct model *model)
{
    for (size_t j = 0; j < model->rows; j++)
        model->weights[j] = model->cards * model->inverse[model->used][j];
}

/* A piece that weighs something. */
struct taker {
    double weight;
    int32_t size, other, piece;
};

static int compare_takers(const void *a, const void *b)
{
    const struct taker *left = a, *right = b;
    return left->size != right->size ? left->size - right->size : left->piece - right->piece;
}

/* The heaviest filling of a card, as a column; returns what it weighs. */
static double fill(const struct model *model, size_t k, double *ret_column)
{
    const struct blank *blank = &model->blanks[k];
    const int32_t row = blank->other + 1, n_rooms = (blank->whole + 1) * row;
    g_autofree double *best = g_new0(double, n_rooms);
    g_autofree int32_t *last = g_new(int32_t, n_rooms); /* a piece; ~x: room x gives as much */
    struct taker takers[CUTTING_SIZES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < model->n; i++) {
        if (model->weights[i] > 0 && fits(blank, i))
            takers[n++] =
                (struct taker){model->weights[i], blank->sizes[i], blank->others[i], (int32_t)i};
    }
    qsort(takers, n, sizeof *takers, compare_takers);
    for (int32_t room = 0; room < n_rooms; room++) {
        const int32_t size = room / row, other = room % row;
        last[room] = ~MAX(size > 0 ? room - row : room - 1, 0);
        if (size > 0)
            best[room] = best[room - row];
        if (other > 0 && best[room - 1] > best[room]) {
            best[room] = best[room - 1];
            last[room] = ~(room - 1);
        }
        for (size_t i = 0; i < n && takers[i].size <= size; i++) {
            if (takers[i].other > other)
                continue;
            const int32_t rest = room - takers[i].size * row - takers[i].other;
            const double weight = best[rest] + takers[i].weight;
            if (weight <= best[room] + EPSILON / 16)
                continue;
            best[room] = weight;
            last[room] = takers[i].piece;
        }
    }
    memset(ret_column, 0, model->rows * sizeof *ret_column);
    ret_column[model->n + k] = -1;
    for (int32_t room = n_rooms - 1; room > 0;) {
        const int32_t piece = last[room];
        if (piece < 0) {
            room = ~piece;
            continue;
        }
        ret_column[piece]++;
        room -= blank->sizes[piece] * row + blank->others[piece];
    }
    return best[n_rooms - 1];
}

/* A pattern that weighs more than its card. */
static bool find_pattern(struct model *model, double *ret_column)
{
    for (size_t i = 0; i < model->n_blanks; i++) {
        const size_t k = (model->next + i) % model->n_blanks;
        if (fill(model, k, ret_column) <= model->weights[model->n + k] + EPSILON)
            continue;
        model->next = (k + 1) % model->n_blanks;
        return true;
    }
    return false;
}

/* A column with which less of the cards would be needed; false: there is none. */
static bool find_better(struct model *model, double *ret_column)
{
    size_t negative = 0;

    for (size_t i = 1; i < model->rows; i++) {
        if (model->weights[i] < model->weights[negative])
            negative = i;
    }
    if (model->weights[negative] >= -EPSILON)
        return find_pattern(model, ret_column);
    memset(ret_column, 0, model->rows * sizeof *ret_column);
    ret_column[negative] = -1;
    return true;
}

/* Takes the column into the basis, for the one that runs out first. */
static bool pivot(struct model *model, const double *new)
{
    double column[ROWS_MAX], least = 0;
    size_t leaves = model->rows;

    for (size_t i = 0; i < model->rows; i++) {
        column[i] = 0;
        for (size_t j = 0; j < model->rows; j++)
            column[i] += model->inverse[i][j] * new[j];
        if (column[i] <= EPSILON || i == model->used)
            continue;
        if (leaves == model->rows || model->level[i] / column[i] < least) {
            least = model->level[i] / column[i];
            leaves = i;
        }
    }
    if (leaves == model->rows)
        return false;
    for (size_t j = 0; j < model->rows; j++)
        model->inverse[leaves][j] /= column[leaves];
    model->level[leaves] = least;
    for (size_t i = 0; i < model->rows; i++) {
        if (i == leaves || column[i] == 0)
            continue;
        for (size_t j = 0; j < model->rows; j++)
            model->inverse[i][j] -= column[i] * model->inverse[leaves][j];
        model->level[i] = MAX(model->level[i] - column[i] * least, 0);
    }
    return true;
}

/* What rounding or an early end have left: no filling may weigh more than its card, whose mean is 1. */
static void give(struct model *model, struct piece *pieces, struct stock *stocks)
{
    double column[ROWS_MAX], sum = 0;

    for (size_t j = 0; j < model->rows; j++)
        model->weights[j] = MAX(model->weights[j], 0);
    for (size_t k = 0; k < model->n_blanks; k++) {
        double *price = &model->weights[model->n + k];
        *price = MAX(*price, fill(model, k, column));
        sum += *price * model->blanks[k].cards;
    }
    for (size_t i = 0; i < model->n; i++)
        pieces[i].weight = sum > 0 ? model->weights[i] * model->cards / sum : 0;
    for (size_t k = 0; k < model->n_blanks; k++)
        stocks[k].price = sum > 0 ? model->weights[model->n + k] * model->cards / sum : 1;
}

void cutting_weigh_stocks(struct piece *pieces, size_t n, struct stock *stocks, size_t n_stocks)
{
    g_autofree struct model *model = g_new(struct model, 1);
    double column[ROWS_MAX];

    g_assert(n <= CUTTING_SIZES_MAX && n_stocks <= CUTTING_STOCKS_MAX);
    model_init(model, pieces, n, stocks, n_stocks);
    set_weights(model);
    for (int i = 0; n > 0 && i < ROUNDS_MAX && find_better(model, column); i++) {
        if (!pivot(model, column))
            break;
        set_weights(model);
    }
    give(model, pieces, stocks);
}

void cutting_weigh(struct piece *pieces, size_t n, int32_t whole, int32_t other)
{
    struct cut cuts[CUTTING_SIZES_MAX];
    struct stock stock = {.whole = whole, .other = other, .cards = 1, .cuts = cuts};

    for (size_t i = 0; i < n; i++)
        cuts[i] = (struct cut){pieces[i].size, pieces[i].other};
    cutting_weigh_stocks(pieces, n, &stock, 1);
}

void cutting_worth(const struct piece *pieces, size_t n, int32_t whole, int32_t other,
                   float *ret_worth)
{
    const int32_t row = other + 1, n_rooms = (whole + 1) * row;

    for (int32_t room = 0; room < n_rooms; room++) {
        const int32_t size = room / row, beside = room % row;
        float best =
            MAX(size > 0 ? ret_worth[room - row] : 0, beside > 0 ? ret_worth[room - 1] : 0);
        for (size_t i = 0; i < n; i++) {
            if (pieces[i].size <= size && pieces[i].other <= beside)
                best = MAX(best, ret_worth[room - pieces[i].size * row - pieces[i].other] +
                                     (float)pieces[i].weight);
        }
        ret_worth[room] = best;
    }
}

/* What one more of these coming adds, if it is taken wherever that is worth it. */
static void offer(const struct piece *piece, double part, int32_t whole, int32_t other,
                  const float *now, float *next)
{
    const int32_t row = other + 1, shift = piece->size * row + piece->other;
    const float weight = (float)piece->weight, chance = (float)part;

    for (int32_t size = piece->size; size <= whole; size++) {
        const float *from = now + size * row;
        float *to = next + size * row;
        for (int32_t beside = piece->other; beside <= other; beside++)
            to[beside] += chance * MAX(weight + from[beside - shift] - from[beside], 0);
    }
}

void cutting_worth_of_offers(const struct piece *pieces, size_t n, int32_t whole, int32_t other,
                             int offers, float *ret_worth)
{
    const size_t n_rooms = (size_t)(whole + 1) * (size_t)(other + 1);
    g_autofree float *now = g_new0(float, n_rooms);
    double wanted = 0;

    for (size_t i = 0; i < n; i++)
        wanted += pieces[i].wanted;
    for (int round = 0; wanted > 0 && round < offers; round++) {
        memcpy(ret_worth, now, n_rooms * sizeof *now);
        for (size_t i = 0; i < n; i++)
            offer(&pieces[i], pieces[i].wanted / wanted, whole, other, now, ret_worth);
        memcpy(now, ret_worth, n_rooms * sizeof *now);
    }
}

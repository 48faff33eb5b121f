/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gilmore and Gomory's column generation. The primal problem: as few cards as possible, each cut by
 * some pattern, that yield each piece as often as it is wanted. Of its patterns, which are too many
 * to list, only those of the current basis are known; the next one is the best filling of a card at
 * the current weights, found by a knapsack. When no filling weighs more than 1 the weights are the
 * answer.
 *
 *   primal: least sum over p of x[p]            with, for each i, sum over p of a[i,p] * x[p] >= d[i]
 *   dual:   greatest sum over i of d[i] * w[i]  with, for each p, sum over i of a[i,p] * w[i] <= 1
 *
 *   i       a piece; d[i], how often it is wanted (piece.wanted); w[i], its weight, in cards
 *   p       a pattern; a[i,p], how often it has the piece; x[p], how many cards it cuts
 *   B       the basis: the columns a[.,p] of as many patterns as there are pieces; with its inverse,
 *           model.inverse: x (model.level) = inverse * d, and w (model.weights) = model.cost * inverse
 */
#include "policy/cutting.h"

#include <glib.h>
#include <string.h>

/* More are not worth the time: what is reached by then is scaled until it holds. */
#define ROUNDS_MAX 512
#define EPSILON 1e-9

struct model {
    size_t n;
    int32_t whole, other; /* sizes and these are divided by what divides them all */
    int32_t sizes[CUTTING_SIZES_MAX], others[CUTTING_SIZES_MAX];
    double inverse[CUTTING_SIZES_MAX][CUTTING_SIZES_MAX]; /* of the basis; a column is a pattern */
    double level[CUTTING_SIZES_MAX]; /* how many cards each pattern of the basis cuts */
    double cost[CUTTING_SIZES_MAX];  /* 1, or 0 for a pattern that throws one piece away */
    double weights[CUTTING_SIZES_MAX];
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

/* Each piece alone, as often as it fits. */
static void model_init(struct model *model, const struct piece *pieces, size_t n, int32_t whole,
                      int32_t other)
{
    int32_t common = whole, common_other = other;

    for (size_t i = 0; i < n; i++) {
        common = divisor(common, pieces[i].size);
        common_other = divisor(common_other, pieces[i].other);
    }
    model->n = n;
    model->whole = whole / common;
    model->other = other > 0 ? other / common_other : 0;
    for (size_t i = 0; i < n; i++) {
        model->sizes[i] = pieces[i].size / common;
        model->others[i] = other > 0 ? pieces[i].other / common_other : 0;
        int32_t times = INT32_MAX;
        if (model->sizes[i] > 0)
            times = model->whole / model->sizes[i];
        if (model->others[i] > 0)
            times = MIN(times, model->other / model->others[i]);
        memset(model->inverse[i], 0, sizeof model->inverse[i]);
        model->inverse[i][i] = 1.0 / times;
        model->level[i] = pieces[i].wanted / times;
        model->cost[i] = 1;
    }
}

static void set_weights(struct model *model)
{
    for (size_t j = 0; j < model->n; j++) {
        model->weights[j] = 0;
        for (size_t i = 0; i < model->n; i++)
            model->weights[j] += model->cost[i] * model->inverse[i][j];
    }
}

/* A piece that weighs something. */
struct taker {
    double weight;
    int32_t size, other, piece;
};

/* The heaviest filling of a card, as how often it has each piece; returns what it weighs. */
static double fill(const struct model *model, double *ret_pattern)
{
    const int32_t row = model->other + 1, n_rooms = (model->whole + 1) * row;
    g_autofree double *best = g_new0(double, n_rooms);
    g_autofree int32_t *last = g_new(int32_t, n_rooms); /* a piece; ~x: room x gives as much */
    struct taker takers[CUTTING_SIZES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < model->n; i++) {
        if (model->weights[i] > 0)
            takers[n++] = (struct taker){model->weights[i], model->sizes[i], model->others[i],
                                         (int32_t)i};
    }
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
    memset(ret_pattern, 0, model->n * sizeof *ret_pattern);
    for (int32_t room = n_rooms - 1; room > 0;) {
        const int32_t piece = last[room];
        if (piece < 0) {
            room = ~piece;
            continue;
        }
        ret_pattern[piece]++;
        room -= model->sizes[piece] * row + model->others[piece];
    }
    return best[n_rooms - 1];
}

/* A pattern that would need fewer cards; false: there is none. */
static bool find_better(const struct model *model, double *ret_pattern, double *ret_cost)
{
    size_t negative = 0;

    for (size_t i = 1; i < model->n; i++) {
        if (model->weights[i] < model->weights[negative])
            negative = i;
    }
    *ret_cost = 1;
    if (model->weights[negative] >= -EPSILON)
        return fill(model, ret_pattern) > 1 + EPSILON;
    memset(ret_pattern, 0, model->n * sizeof *ret_pattern);
    ret_pattern[negative] = -1;
    *ret_cost = 0;
    return true;
}

/* Takes the pattern into the basis, for the one that runs out first. */
static bool pivot(struct model *model, const double *pattern, double cost)
{
    double column[CUTTING_SIZES_MAX], least = 0;
    size_t leaves = model->n;

    for (size_t i = 0; i < model->n; i++) {
        column[i] = 0;
        for (size_t j = 0; j < model->n; j++)
            column[i] += model->inverse[i][j] * pattern[j];
        if (column[i] <= EPSILON)
            continue;
        if (leaves == model->n || model->level[i] / column[i] < least) {
            least = model->level[i] / column[i];
            leaves = i;
        }
    }
    if (leaves == model->n)
        return false;
    for (size_t j = 0; j < model->n; j++)
        model->inverse[leaves][j] /= column[leaves];
    model->level[leaves] = least;
    model->cost[leaves] = cost;
    for (size_t i = 0; i < model->n; i++) {
        if (i == leaves || column[i] == 0)
            continue;
        for (size_t j = 0; j < model->n; j++)
            model->inverse[i][j] -= column[i] * model->inverse[leaves][j];
        model->level[i] = MAX(model->level[i] - column[i] * least, 0);
    }
    return true;
}

void cutting_weigh(struct piece *pieces, size_t n, int32_t whole, int32_t other)
{
    g_autofree struct model *model = g_new(struct model, 1);
    double pattern[CUTTING_SIZES_MAX], cost;

    g_assert(n <= CUTTING_SIZES_MAX);
    model_init(model, pieces, n, whole, other);
    set_weights(model);
    for (int i = 0; n > 0 && i < ROUNDS_MAX && find_better(model, pattern, &cost); i++) {
        if (!pivot(model, pattern, cost))
            break;
        set_weights(model);
    }
    /* What rounding or an early end have left: no filling may weigh more than 1. */
    for (size_t i = 0; i < n; i++)
        model->weights[i] = MAX(model->weights[i], 0);
    const double most = n > 0 ? MAX(fill(model, pattern), 1) : 1;
    for (size_t i = 0; i < n; i++)
        pieces[i].weight = model->weights[i] / most;
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column generation, and at each step a bound by weak duality, which holds whatever the rounding:
 *
 *   primal: most sum over p of value[p] * x[p]   with sum over p of a[i,p] * x[p] <= d[i]   pods of i
 *                                                and  sum over p of n of x[p] <= N[n]       nodes of n
 *   for any u[i] >= 0:
 *           bound(u) = sum of d[i] * u[i] + sum of N[n] * K[n](value - u)
 *
 *   i       pods that are alike; d[i], how many came; u[i], what each is worth without any node
 *   n       nodes that are alike; N[n], how many there are
 *   p       a filling of a node of n, which has pods of i a[i,p] times; x[p], how many nodes have it
 *   K[n](w) what the best filling of such a node weighs (bound_filling.c)
 *
 * Each packing is a choice of x, so that no packing passes the primal, and no primal any bound(u). The
 * simplex below only looks for a good u; it asks for fillings between its own and the best so far, which
 * gets there in fewer steps.
 */
#include "simulate/bound.h"

#include "simulate/bound_filling.h"

#include <math.h>
#include <string.h>

#define ROUNDS_MAX 400
#define GAP 1e-5 /* of the bound: closer is not worth the time */
#define EPSILON 1e-9
#define PERTURBATION 1e-7 /* of what is there of each row, so that no two run out together */

struct column {
    double value;
    uint32_t node;
    GArray *parts; /* struct filling_part */
};

/* The primal with the columns known so far. Rows are the pods, then the nodes. */
struct master {
    const struct bound_problem *problem;
    size_t n; /* rows */
    GPtrArray *columns; /* struct column */
    double *inverse; /* of the basis, by rows */
    double *level;   /* of each basic variable */
    double *cost;
    bool *basic_slack; /* by row: whether its slack is in the basis */
    ssize_t *basis;    /* a column, or ~row of a slack */
    double *duals;
};

static void column_free(gpointer data)
{
    struct column *column = data;

    g_array_unref(column->parts);
    g_free(column);
}

static struct master *master_new(const struct bound_problem *problem)
{
    struct master *master = g_new0(struct master, 1);
    const size_t n = problem->n_pods + problem->n_nodes;

    master->problem = problem;
    master->n = n;
    master->columns = g_ptr_array_new_with_free_func(column_free);
    master->inverse = g_new0(double, n * n);
    master->level = g_new(double, n);
    master->cost = g_new0(double, n);
    master->basis = g_new(ssize_t, n);
    master->basic_slack = g_new(bool, n);
    master->duals = g_new0(double, n);
    for (size_t i = 0; i < n; i++) {
        const double there = i < problem->n_pods ? problem->pods[i].pods
                                                 : problem->nodes[i - problem->n_pods].nodes;
        master->inverse[i * n + i] = 1;
        master->level[i] = there + PERTURBATION * (double)(i + 1);
        master->basis[i] = ~(ssize_t)i;
        master->basic_slack[i] = true;
    }
    return master;
}

static void master_free(struct master *master)
{
    g_ptr_array_unref(master->columns);
    g_free(master->inverse);
    g_free(master->level);
    g_free(master->cost);
    g_free(master->basis);
    g_free(master->basic_slack);
    g_free(master->duals);
    g_free(master);
}

static void set_duals(struct master *master)
{
    const size_t n = master->n;

    memset(master->duals, 0, n * sizeof *master->duals);
    for (size_t i = 0; i < n; i++) {
        if (master->cost[i] == 0)
            continue;
        for (size_t j = 0; j < n; j++)
            master->duals[j] += master->cost[i] * master->inverse[i * n + j];
    }
}

static double gain_of(const struct master *master, const struct column *column)
{
    double gain = column->value - master->duals[master->problem->n_pods + column->node];

    for (guint i = 0; i < column->parts->len; i++) {
        const struct filling_part *part = &g_array_index(column->parts, struct filling_part, i);
        gain -= part->times * master->duals[part->pod];
    }
    return gain;
}

/* The variable whose growth gains most; false: none does. */
static bool find_entering(const struct master *master, ssize_t *ret_variable)
{
    double most = EPSILON;

    for (guint i = 0; i < master->columns->len; i++) {
        const double gain = gain_of(master, master->columns->pdata[i]);
        if (gain > most) {
            most = gain;
            *ret_variable = (ssize_t)i;
        }
    }
    for (size_t i = 0; i < master->n; i++) {
        if (!master->basic_slack[i] && -master->duals[i] > most) {
            most = -master->duals[i];
            *ret_variable = ~(ssize_t)i;
        }
    }
    return most > EPSILON;
}

/* inverse * the variable's column. */
static void set_direction(const struct master *master, ssize_t variable, double *ret_direction)
{
    const size_t n = master->n;

    for (size_t i = 0; i < n; i++) {
        const double *row = master->inverse + i * n;
        if (variable < 0) {
            ret_direction[i] = row[~variable];
            continue;
        }
        const struct column *column = master->columns->pdata[variable];
        ret_direction[i] = row[master->problem->n_pods + column->node];
        for (guint k = 0; k < column->parts->len; k++) {
            const struct filling_part *part =
                &g_array_index(column->parts, struct filling_part, k);
            ret_direction[i] += part->times * row[part->pod];
        }
    }
}

static bool pivot(struct master *master, ssize_t variable, double *direction)
{
    const size_t n = master->n;
    size_t leaves = n;
    double least = INFINITY;

    set_direction(master, variable, direction);
    for (size_t i = 0; i < n; i++) {
        if (direction[i] > EPSILON && master->level[i] / direction[i] < least) {
            least = master->level[i] / direction[i];
            leaves = i;
        }
    }
    if (leaves == n)
        return false;
    double *pivot_row = master->inverse + leaves * n;
    for (size_t j = 0; j < n; j++)
        pivot_row[j] /= direction[leaves];
    for (size_t i = 0; i < n; i++) {
        if (i == leaves || direction[i] == 0)
            continue;
        for (size_t j = 0; j < n; j++)
            master->inverse[i * n + j] -= direction[i] * pivot_row[j];
        master->level[i] = MAX(master->level[i] - direction[i] * least, 0);
    }
    master->level[leaves] = least;
    if (master->basis[leaves] < 0)
        master->basic_slack[~master->basis[leaves]] = false;
    if (variable < 0)
        master->basic_slack[~variable] = true;
    master->basis[leaves] = variable;
    master->cost[leaves] =
        variable < 0 ? 0 : ((const struct column *)master->columns->pdata[variable])->value;
    return true;
}

static void solve(struct master *master)
{
    g_autofree double *direction = g_new(double, master->n);
    ssize_t variable;

    for (size_t i = 0; i < 4 * master->n && find_entering(master, &variable); i++) {
        if (!pivot(master, variable, direction))
            return;
        set_duals(master);
    }
}

static bool add_column(struct master *master, uint32_t node, GArray *parts)
{
    struct column *column = g_new(struct column, 1);

    *column = (struct column){.node = node, .parts = g_array_copy(parts)};
    for (guint i = 0; i < parts->len; i++) {
        const struct filling_part *part = &g_array_index(parts, struct filling_part, i);
        column->value += part->times * master->problem->pods[part->pod].value;
    }
    if (gain_of(master, column) <= EPSILON) {
        column_free(column);
        return false;
    }
    g_ptr_array_add(master->columns, column);
    return true;
}

/* bound(u); adds the fillings that it found to the master, if they would gain there. */
static double look(struct master *master, struct fillings *fillings, const double *u,
                   double *weights, bool *ret_added)
{
    const struct bound_problem *problem = master->problem;
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(struct filling_part));
    double bound = 0;

    *ret_added = false;
    for (size_t i = 0; i < problem->n_pods; i++) {
        weights[i] = problem->pods[i].value - u[i];
        bound += problem->pods[i].pods *
                 (fillings_takes_nothing(fillings, i) ? MAX(u[i], problem->pods[i].value) : u[i]);
    }
    for (int32_t kind = 0; kind < problem->n_kinds; kind++) {
        fillings_weigh(fillings, kind, weights);
        for (size_t i = 0; i < problem->n_nodes; i++) {
            if (problem->nodes[i].kind != kind)
                continue;
            bound += problem->nodes[i].nodes * fillings_best(fillings, i, parts);
            *ret_added |= parts->len > 0 && add_column(master, (uint32_t)i, parts);
        }
    }
    return bound;
}

double bound_of(const struct bound_problem *problem)
{
    struct fillings *fillings = fillings_new(problem);
    struct master *master = master_new(problem);
    g_autofree double *best_u = g_new0(double, problem->n_pods + 1);
    g_autofree double *u = g_new0(double, problem->n_pods + 1);
    g_autofree double *weights = g_new0(double, problem->n_pods + 1);
    double best = INFINITY, between = 0.5;
    bool added;

    for (int round = 0; round < ROUNDS_MAX; round++) {
        double reached = 0;
        for (size_t i = 0; i < problem->n_pods; i++)
            u[i] = between * best_u[i] + (1 - between) * MAX(master->duals[i], 0);
        const double bound = look(master, fillings, u, weights, &added);
        if (bound < best) {
            best = bound;
            memcpy(best_u, u, problem->n_pods * sizeof *u);
        }
        if (!added && between == 0)
            break;
        between = added ? 0.5 : 0;
        solve(master);
        for (size_t i = 0; i < master->n; i++)
            reached += master->cost[i] * master->level[i];
        if (best - reached <= GAP * best)
            break;
    }
    master_free(master);
    fillings_free(fillings);
    return best;
}

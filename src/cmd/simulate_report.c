/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/simulate_report.h"

#include "simulate/chart.h"
#include "options/table.h"

#include <math.h>

struct figure {
    double mean, spread;
    size_t n; /* results that have it */
};

static const struct simulation_result *result_of(const struct simulate_report *report,
                                                 size_t policy, size_t seed)
{
    return &report->results[policy * report->n_seeds + seed];
}

/* --- figures ---------------------------------------------------------------------------------- */

/* False: the result has no such figure. */
typedef bool (*reader)(const struct simulation_result *result, double argument, double *ret_value);

static bool read_point(const struct simulation_result *result, double x, double *ret_value)
{
    const struct simulation_point *point = simulation_point_at(result, x);

    if (point)
        *ret_value = 100 * point->allocated;
    return point != NULL;
}

static bool read_end(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = 100 * result->end.allocated;
    return true;
}

static bool read_point_bound(const struct simulation_result *result, double x, double *ret_value)
{
    const struct simulation_point *point = simulation_point_at(result, x);

    if (!point || point->bound <= 0)
        return false;
    *ret_value = 100 * point->bound;
    return true;
}

static bool read_end_bound(const struct simulation_result *result, double unused,
                           double *ret_value)
{
    *ret_value = 100 * result->end.bound;
    return result->end.bound > 0;
}

static bool read_refused(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = 100 * result->refused;
    return true;
}

static bool read_first(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = result->first_failure;
    return result->first_failure >= 0;
}

static bool read_part_used(const struct simulation_result *result, double unused,
                           double *ret_value)
{
    *ret_value = 100 * result->end.part_used;
    return true;
}

static bool read_untouched(const struct simulation_result *result, double unused,
                           double *ret_value)
{
    *ret_value = 100 * result->end.untouched;
    return true;
}

static bool read_failed(const struct simulation_result *result, double kind, double *ret_value)
{
    *ret_value = (double)result->failed[(size_t)kind];
    return true;
}

static bool read_all_failed(const struct simulation_result *result, double unused,
                            double *ret_value)
{
    *ret_value = 0;
    for (size_t i = 0; i < POD_KIND_N; i++)
        *ret_value += (double)result->failed[i];
    return true;
}

static bool read_arrivals(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = (double)result->arrivals;
    return true;
}

static bool read_mean_us(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = result->decision_mean_us;
    return true;
}

static bool read_p99_us(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = result->decision_p99_us;
    return true;
}

static bool read_median_wait(const struct simulation_result *result, double unused,
                             double *ret_value)
{
    *ret_value = result->wait_median_s;
    return true;
}

static bool read_p99_wait(const struct simulation_result *result, double unused, double *ret_value)
{
    *ret_value = result->wait_p99_s;
    return true;
}

static struct figure figure_of(const struct simulate_report *report, size_t policy, reader read,
                               double argument)
{
    struct figure figure = {0};
    double squares = 0, value;

    for (size_t i = 0; i < report->n_seeds; i++) {
        if (read(result_of(report, policy, i), argument, &value)) {
            figure.mean += value;
            figure.n++;
        }
    }
    figure.mean /= (double)MAX(figure.n, 1);
    for (size_t i = 0; i < report->n_seeds; i++) {
        if (read(result_of(report, policy, i), argument, &value))
            squares += (value - figure.mean) * (value - figure.mean);
    }
    if (figure.n > 1)
        figure.spread = sqrt(squares / (double)(figure.n - 1));
    return figure;
}

/* --- the table -------------------------------------------------------------------------------- */

struct report_column {
    const char *heading;
    reader read;
    double argument;
    int digits;
    bool spread;
    bool common; /* the same for all policies: the first one's results have it */
};

static const struct report_column common_columns[] = {
    {"FAILED", read_all_failed},
    {"PART", read_failed, POD_KIND_PART},
    {"ONE", read_failed, POD_KIND_ONE},
    {"SEVERAL", read_failed, POD_KIND_SEVERAL},
    {"NO GPU", read_failed, POD_KIND_NO_GPU},
    {"FREE, IN USE %", read_part_used, .digits = 2},
    {"UNTOUCHED %", read_untouched, .digits = 2},
};
static const struct report_column wait_columns[] = {
    {"WAITED S", read_median_wait, .digits = 2},
    {"P99 S", read_p99_wait, .digits = 2},
};
static const struct report_column time_columns[] = {
    {"MEAN US", read_mean_us},
    {"P99 US", read_p99_us},
};

static void add_columns(GArray *columns, const struct report_column *more, size_t n)
{
    g_array_append_vals(columns, more, (guint)n);
}

/* `last` is the heading of what was allocated in the end. */
static GArray *choose_columns(const struct simulate_report *report, const char *last)
{
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(struct report_column));
    const struct report_column steady[] = {{last, read_end, .digits = 2, .spread = true},
                                           {"REFUSED %", read_refused, .digits = 2, .spread = true}};
    const struct report_column at_100 = {"AT 100%", read_point, 100, 2, true};
    const struct report_column at_percent = {last, read_point, (double)report->percent, 2, true};
    const struct report_column at_end = {last, read_end, .digits = 2, .spread = true};
    const struct report_column bound_100 = {"BOUND", read_point_bound, 100, 2, .common = true};
    const struct report_column bound_percent = {"BOUND", read_point_bound, (double)report->percent,
                                                2, .common = true};
    const struct report_column bound_end = {"BOUND", read_end_bound, .digits = 2, .common = true};
    const struct report_column first = {"FIRST FAILURE %", read_first, .digits = 1};

    if (report->lifetimes > 0) {
        add_columns(columns, steady, 1);
        if (report->bound)
            add_columns(columns, &bound_end, 1);
        add_columns(columns, &steady[1], 1);
    } else {
        if (report->percent >= 100 || report->percent == 0)
            add_columns(columns, &at_100, 1);
        if (report->bound && report->percent >= 100)
            add_columns(columns, &bound_100, 1);
        if (report->percent != 100)
            add_columns(columns, report->percent > 0 ? &at_percent : &at_end, 1);
        if (report->bound && report->percent != 100)
            add_columns(columns, report->percent > 0 ? &bound_percent : &bound_end, 1);
        add_columns(columns, &first, 1);
    }
    add_columns(columns, common_columns, G_N_ELEMENTS(common_columns));
    if (report->paced)
        add_columns(columns, wait_columns, G_N_ELEMENTS(wait_columns));
    if (report->times)
        add_columns(columns, time_columns, G_N_ELEMENTS(time_columns));
    return columns;
}

static void add_cell(struct table *table, const struct simulate_report *report, size_t policy,
                     const struct report_column *column)
{
    const struct figure figure =
        figure_of(report, column->common ? 0 : policy, column->read, column->argument);

    if (figure.n == 0)
        table_cell(table, "-");
    else if (column->spread && figure.n > 1)
        table_cell(table, "%.*f ±%.2f", column->digits, figure.mean, figure.spread);
    else
        table_cell(table, "%.*f", column->digits, figure.mean);
}

void simulate_report_table(const struct simulate_report *report, GString *text)
{
    g_autofree char *last =
        report->lifetimes > 0  ? g_strdup("ALLOCATED %")
        : report->percent == 0 ? g_strdup("AT END")
                               : g_strdup_printf("AT %" G_GINT64_FORMAT "%%", report->percent);
    g_autoptr(GArray) columns = choose_columns(report, last);
    g_autofree const char **headings = g_new0(const char *, columns->len + 1);

    headings[0] = "POLICY";
    for (guint i = 0; i < columns->len; i++)
        headings[i + 1] = g_array_index(columns, struct report_column, i).heading;
    struct table *table = table_new(columns->len + 1, headings);
    for (size_t policy = 0; policy < report->n_policies; policy++) {
        table_cell(table, "%s", report->policies[policy]->name);
        for (guint i = 0; i < columns->len; i++)
            add_cell(table, report, policy, &g_array_index(columns, struct report_column, i));
    }
    table_write(table, text);
    table_free(table);
    g_string_append_printf(text,
                           "\n%.0f GPUs on %u nodes, %.0f pods came%s, %zu seed%s. Allocated: "
                           "percent of the GPUs%s.\n",
                           report->results[0].gpus, report->results[0].nodes,
                           figure_of(report, 0, read_arrivals, 0).mean,
                           report->n_seeds > 1 ? " on average" : "", report->n_seeds,
                           report->n_seeds > 1 ? "s" : "",
                           report->lifetimes > 0
                               ? ", mean over the time after the first lifetime"
                               : ", when the pods that came had asked for so much");
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_number(struct json_writer *writer, const char *key, double value)
{
    json_key(writer, key);
    json_double(writer, round(value * 1e6) / 1e6);
}

static void write_point(struct json_writer *writer, const struct simulation_point *point)
{
    json_begin_object(writer);
    write_number(writer, "x", point->x);
    write_number(writer, "allocated", point->allocated);
    write_number(writer, "partUsed", point->part_used);
    write_number(writer, "untouched", point->untouched);
    if (point->bound > 0)
        write_number(writer, "bound", point->bound);
    json_end_object(writer);
}

static void write_result(struct json_writer *writer, const struct simulation_result *result,
                         uint32_t seed, const struct simulate_report *report)
{
    json_begin_object(writer);
    json_key_int(writer, "seed", seed);
    json_key_int(writer, "arrivals", (int64_t)result->arrivals);
    json_key(writer, "failed");
    json_begin_object(writer);
    for (size_t i = 0; i < POD_KIND_N; i++)
        json_key_int(writer, pod_kind_names[i], (int64_t)result->failed[i]);
    json_end_object(writer);
    if (result->first_failure >= 0)
        write_number(writer, "firstFailure", result->first_failure);
    write_number(writer, "refused", result->refused);
    if (report->paced) {
        write_number(writer, "waitMedianSeconds", result->wait_median_s);
        write_number(writer, "waitP99Seconds", result->wait_p99_s);
    }
    if (report->times) {
        write_number(writer, "decisionMeanMicroseconds", result->decision_mean_us);
        write_number(writer, "decisionP99Microseconds", result->decision_p99_us);
    }
    if (result->error)
        json_key_string(writer, "complaint", result->error);
    json_key(writer, "end");
    write_point(writer, &result->end);
    json_key(writer, "points");
    json_begin_array(writer);
    for (guint i = 0; i < result->points->len; i++)
        write_point(writer, &g_array_index(result->points, struct simulation_point, i));
    json_end_array(writer);
    json_end_object(writer);
}

void simulate_report_json(const struct simulate_report *report, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_int(&writer, "nodes", report->results[0].nodes);
    write_number(&writer, "gpus", report->results[0].gpus);
    json_key_string(&writer, "x", report->lifetimes > 0 ? "lifetimes" : "percent");
    json_key(&writer, "policies");
    json_begin_array(&writer);
    for (size_t i = 0; i < report->n_policies; i++) {
        json_begin_object(&writer);
        json_key_string(&writer, "policy", report->policies[i]->name);
        json_key(&writer, "runs");
        json_begin_array(&writer);
        for (size_t k = 0; k < report->n_seeds; k++)
            write_result(&writer, result_of(report, i, k), report->seeds[k], report);
        json_end_array(&writer);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    g_string_append_c(text, '\n');
}

/* --- the drawing ------------------------------------------------------------------------------ */

static void add_point(struct simulation_point *sum, const struct simulation_point *point)
{
    sum->allocated += point->allocated;
    sum->part_used += point->part_used;
    sum->untouched += point->untouched;
}

static void divide_point(struct simulation_point *sum, size_t n)
{
    sum->allocated /= (double)n;
    sum->part_used /= (double)n;
    sum->untouched /= (double)n;
}

/* Means over seeds at every x that all of them have. */
static GArray *mean_points(const struct simulate_report *report, size_t policy)
{
    const GArray *first = result_of(report, policy, 0)->points;
    GArray *points = g_array_new(FALSE, FALSE, sizeof(struct simulation_point));

    for (guint i = 0; i < first->len; i++) {
        struct simulation_point sum = {.x = g_array_index(first, struct simulation_point, i).x};
        size_t n = 0;
        for (size_t k = 0; k < report->n_seeds; k++) {
            const struct simulation_point *point =
                simulation_point_at(result_of(report, policy, k), sum.x);
            if (!point)
                continue;
            add_point(&sum, point);
            n++;
        }
        divide_point(&sum, MAX(n, 1));
        if (n == report->n_seeds)
            g_array_append_val(points, sum);
    }
    return points;
}

void simulate_report_chart(const struct simulate_report *report, GString *text)
{
    struct chart_policy policies[CHART_POLICIES_MAX] = {0};
    const size_t n = MIN(report->n_policies, CHART_POLICIES_MAX);
    g_autofree char *title =
        g_strdup_printf("%.0f GPUs on %u nodes, mean of %zu seed%s", report->results[0].gpus,
                        report->results[0].nodes, report->n_seeds, report->n_seeds > 1 ? "s" : "");
    GArray *points[CHART_POLICIES_MAX] = {NULL};

    for (size_t i = 0; i < n; i++) {
        policies[i].name = report->policies[i]->name;
        policies[i].points = points[i] = mean_points(report, i);
        for (size_t k = 0; k < report->n_seeds; k++)
            add_point(&policies[i].end, &result_of(report, i, k)->end);
        divide_point(&policies[i].end, report->n_seeds);
    }
    chart_write(&(struct chart){title, report->lifetimes > 0, policies, n}, text);
    for (size_t i = 0; i < n; i++)
        g_array_unref(points[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/simulate_report.h"

#include "base/printable.h"
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

enum reading {
    READ_POINT, /* at the x of the argument */
    READ_END,
    READ_REFUSED,
    READ_FIRST,
    READ_PART_USED,
    READ_UNTOUCHED,
    READ_FAILED, /* of the kind of the argument */
    READ_ALL_FAILED,
    READ_ARRIVALS,
    READ_MOVES,
    READ_GROUPS,
    READ_GROUPS_REFUSED,
    READ_GROUP_WAIT,
    READ_MEAN_US,
    READ_P99_US,
    READ_MEDIAN_WAIT,
    READ_P99_WAIT,
};

static double count_failed(const struct simulation_result *result)
{
    uint64_t n = 0;

    for (size_t i = 0; i < POD_KIND_N; i++)
        n += result->failed[i];
    return (double)n;
}

/* False: the result has no such figure. */
static bool read_figure(const struct simulation_result *result, enum reading what, double argument,
                        double *ret_value)
{
    const struct simulation_point *point =
        what == READ_POINT ? simulation_point_at(result, argument) : &result->end;
    const double values[] = {
        [READ_POINT] = point ? 100 * point->allocated : 0,
        [READ_END] = 100 * result->end.allocated,
        [READ_REFUSED] = 100 * result->refused,
        [READ_FIRST] = result->first_failure,
        [READ_PART_USED] = 100 * result->end.part_used,
        [READ_UNTOUCHED] = 100 * result->end.untouched,
        [READ_FAILED] = what == READ_FAILED ? (double)result->failed[(size_t)argument] : 0,
        [READ_ALL_FAILED] = count_failed(result),
        [READ_ARRIVALS] = (double)result->arrivals,
        [READ_MOVES] = (double)result->moves,
        [READ_GROUPS] = (double)result->groups,
        [READ_GROUPS_REFUSED] = (double)result->groups_refused,
        [READ_GROUP_WAIT] = result->group_wait_s,
        [READ_MEAN_US] = result->decision_mean_us,
        [READ_P99_US] = result->decision_p99_us,
        [READ_MEDIAN_WAIT] = result->wait_median_s,
        [READ_P99_WAIT] = result->wait_p99_s,
    };

    *ret_value = values[what];
    switch (what) {
    case READ_POINT:
        return point != NULL;
    case READ_FIRST:
        return result->first_failure >= 0;
    default:
        return true;
    }
}

static struct figure figure_of(const struct simulate_report *report, size_t policy,
                               enum reading what, double argument)
{
    struct figure figure = {0};
    double squares = 0, value;

    for (size_t i = 0; i < report->n_seeds; i++) {
        if (read_figure(result_of(report, policy, i), what, argument, &value)) {
            figure.mean += value;
            figure.n++;
        }
    }
    figure.mean /= (double)MAX(figure.n, 1);
    for (size_t i = 0; i < report->n_seeds; i++) {
        if (read_figure(result_of(report, policy, i), what, argument, &value))
            squares += (value - figure.mean) * (value - figure.mean);
    }
    if (figure.n > 1)
        figure.spread = sqrt(squares / (double)(figure.n - 1));
    return figure;
}

/* --- the table -------------------------------------------------------------------------------- */

struct report_column {
    const char *heading;
    enum reading what;
    double argument;
    int digits;
    bool spread;
};

static const struct report_column common_columns[] = {
    {"FAILED", READ_ALL_FAILED},
    {"PART", READ_FAILED, POD_KIND_PART},
    {"ONE", READ_FAILED, POD_KIND_ONE},
    {"SEVERAL", READ_FAILED, POD_KIND_SEVERAL},
    {"NO GPU", READ_FAILED, POD_KIND_NO_GPU},
    {"FREE, IN USE %", READ_PART_USED, .digits = 2},
    {"UNTOUCHED %", READ_UNTOUCHED, .digits = 2},
};
static const struct report_column group_columns[] = {
    {"GROUPS", READ_GROUPS},
    {"REFUSED", READ_GROUPS_REFUSED},
};
static const struct report_column group_wait = {"WAITED S", READ_GROUP_WAIT};
static const struct report_column wait_columns[] = {
    {"WAITED S", READ_MEDIAN_WAIT, .digits = 2},
    {"P99 S", READ_P99_WAIT, .digits = 2},
};
static const struct report_column time_columns[] = {
    {"MEAN US", READ_MEAN_US},
    {"P99 US", READ_P99_US},
};

static void add_columns(GArray *columns, const struct report_column *more, size_t n)
{
    g_array_append_vals(columns, more, (guint)n);
}

/* `last` is the heading of what was allocated in the end. */
static GArray *choose_columns(const struct simulate_report *report, const char *last)
{
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(struct report_column));
    const struct report_column steady[] = {
        {last, READ_END, .digits = 2, .spread = true},
        {"REFUSED %", READ_REFUSED, .digits = 2, .spread = true}};
    const struct report_column at_100 = {"AT 100%", READ_POINT, 100, 2, true};
    const struct report_column at_percent = {last, READ_POINT, (double)report->percent, 2, true};
    const struct report_column at_end = {last, READ_END, .digits = 2, .spread = true};
    const struct report_column first = {"FIRST FAILURE %", READ_FIRST, .digits = 1};

    const struct report_column moves = {"MOVES", READ_MOVES};

    if (report->lifetimes > 0) {
        add_columns(columns, steady, G_N_ELEMENTS(steady));
        if (report->moves)
            add_columns(columns, &moves, 1);
    } else {
        if (report->percent >= 100 || report->percent == 0)
            add_columns(columns, &at_100, 1);
        if (report->percent != 100)
            add_columns(columns, report->percent > 0 ? &at_percent : &at_end, 1);
        add_columns(columns, &first, 1);
    }
    add_columns(columns, common_columns, G_N_ELEMENTS(common_columns));
    if (report->gangs)
        add_columns(columns, group_columns, G_N_ELEMENTS(group_columns));
    if (report->gangs && report->lifetimes > 0)
        add_columns(columns, &group_wait, 1);
    if (report->paced)
        add_columns(columns, wait_columns, G_N_ELEMENTS(wait_columns));
    if (report->times)
        add_columns(columns, time_columns, G_N_ELEMENTS(time_columns));
    return columns;
}

static void add_cell(struct table *table, const struct simulate_report *report, size_t policy,
                     const struct report_column *column)
{
    const struct figure figure = figure_of(report, policy, column->what, column->argument);

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
    printable_append(text,
                     "\n%.0f GPUs on %u nodes, %.0f pods came%s, %zu seed%s. Allocated: "
                     "percent of the GPUs%s.\n",
                     report->results[0].gpus, report->results[0].nodes,
                     figure_of(report, 0, READ_ARRIVALS, 0).mean,
                     report->n_seeds > 1 ? " on average" : "", report->n_seeds,
                     report->n_seeds > 1 ? "s" : "",
                     report->lifetimes > 0 ? ", mean over the time after the first lifetime"
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
    json_end_object(writer);
}

static void write_result(struct json_writer *writer, const struct simulation_result *result,
                         uint32_t seed, const struct simulate_report *report)
{
    json_begin_object(writer);
    json_key_int(writer, "seed", seed);
    json_key_int(writer, "arrivals", (int64_t)result->arrivals);
    json_key_object(writer, "failed");
    for (size_t i = 0; i < POD_KIND_N; i++)
        json_key_int(writer, pod_kind_names[i], (int64_t)result->failed[i]);
    json_end_object(writer);
    if (result->first_failure >= 0)
        write_number(writer, "firstFailure", result->first_failure);
    write_number(writer, "refused", result->refused);
    if (report->gangs) {
        json_key_int(writer, "groups", (int64_t)result->groups);
        json_key_int(writer, "groupsRefused", (int64_t)result->groups_refused);
    }
    if (report->gangs && report->lifetimes > 0)
        write_number(writer, "groupWaitSeconds", result->group_wait_s);
    if (report->moves)
        json_key_int(writer, "moves", (int64_t)result->moves);
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
    json_key_array(writer, "points");
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
    json_key_array(&writer, "policies");
    for (size_t i = 0; i < report->n_policies; i++) {
        json_begin_object(&writer);
        json_key_string(&writer, "policy", report->policies[i]->name);
        json_key_array(&writer, "runs");
        for (size_t k = 0; k < report->n_seeds; k++)
            write_result(&writer, result_of(report, i, k), report->seeds[k], report);
        json_end_array(&writer);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    g_string_append_c(text, '\n');
}

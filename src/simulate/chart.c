/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/chart.h"

#include <math.h>

/* In pixels. Left the lines, right the bars. */
#define WIDTH 960
#define HEIGHT 420
#define TOP 50
#define BOTTOM 360
#define LINES_LEFT 60
#define LINES_RIGHT 560
#define BARS_LEFT 690
#define BARS_RIGHT 930
#define BAR_MAX 34

/* Told apart by people who do not see all colours, too: Okabe and Ito's. */
static const char *const colours[CHART_POLICIES_MAX] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                        "#e69f00", "#56b4e9", "#000000", "#999999"};

/* What the axes of the lines span. */
struct span {
    double x_min, x_max, y_min, y_max;
};

static double x_of(const struct span *span, double x)
{
    return LINES_LEFT + (x - span->x_min) / (span->x_max - span->x_min) * (LINES_RIGHT - LINES_LEFT);
}

static double y_of(const struct span *span, double y)
{
    return BOTTOM - (y - span->y_min) / (span->y_max - span->y_min) * (BOTTOM - TOP);
}

G_GNUC_PRINTF(6, 7)
static void write_label(GString *text, double x, double y, const char *anchor, const char *fill,
                        const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *plain = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *escaped = g_markup_escape_text(plain, -1);
    g_string_append_printf(text,
                           "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n",
                           x, y, anchor, fill, escaped);
}

static void write_line(GString *text, double x1, double y1, double x2, double y2,
                       const char *stroke)
{
    g_string_append_printf(
        text, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
        x2, y2, stroke);
}

/* The last third or so, where policies differ; all of it where pods leave. */
static struct span find_span(const struct chart *chart)
{
    struct span span = {.x_max = chart->lifetimes ? 1 : 100, .y_min = 100, .y_max = 100};

    for (size_t i = 0; i < chart->n_policies; i++) {
        const GArray *points = chart->policies[i].points;
        if (points->len > 0)
            span.x_max = MAX(span.x_max,
                             g_array_index(points, struct simulation_point, points->len - 1).x);
    }
    span.x_min = chart->lifetimes ? 0 : floor(span.x_max * 0.6 / 10) * 10;
    for (size_t i = 0; i < chart->n_policies; i++) {
        const GArray *points = chart->policies[i].points;
        for (guint k = 0; k < points->len; k++) {
            const struct simulation_point *point =
                &g_array_index(points, struct simulation_point, k);
            if (point->x >= span.x_min)
                span.y_min = MIN(span.y_min, 100 * point->allocated);
        }
    }
    span.y_min = MAX(0, floor((span.y_min - 1) / 10) * 10);
    return span;
}

static void write_axes(const struct chart *chart, const struct span *span, GString *text)
{
    const double y_step = span->y_max - span->y_min > 50 ? 10 : 5;
    const double x_step = chart->lifetimes ? MAX(1, floor(span->x_max / 8)) : 10;
    const int n_y = (int)((span->y_max - span->y_min) / y_step);
    const int n_x = (int)((span->x_max - span->x_min) / x_step + 1e-9);

    for (int i = 0; i <= n_y; i++) {
        const double y = span->y_min + i * y_step;
        write_line(text, LINES_LEFT, y_of(span, y), LINES_RIGHT, y_of(span, y), "#dddddd");
        write_label(text, LINES_LEFT - 8, y_of(span, y) + 4, "end", "#444444", "%.0f", y);
    }
    for (int i = 0; i <= n_x; i++) {
        const double x = span->x_min + i * x_step;
        write_line(text, x_of(span, x), BOTTOM, x_of(span, x), BOTTOM + 4, "#444444");
        write_label(text, x_of(span, x), BOTTOM + 18, "middle", "#444444", "%.0f", x);
    }
    write_line(text, LINES_LEFT, BOTTOM, LINES_RIGHT, BOTTOM, "#444444");
    write_label(text, LINES_LEFT - 8, TOP - 14, "start", "#444444", "GPU allocated, %%");
    write_label(text, (LINES_LEFT + LINES_RIGHT) / 2.0, BOTTOM + 38, "middle", "#444444", "%s",
                chart->lifetimes ? "time, in mean lifetimes of a pod"
                                 : "GPU that arrivals have asked for, % of the cluster's");
}

static void write_policy_line(const struct chart_policy *policy, const struct span *span,
                              const char *colour, GString *text)
{
    g_string_append_printf(text, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                           colour);
    for (guint k = 0; k < policy->points->len; k++) {
        const struct simulation_point *point =
            &g_array_index(policy->points, struct simulation_point, k);
        if (point->x >= span->x_min)
            g_string_append_printf(text, "%.1f,%.1f ", x_of(span, point->x),
                                   y_of(span, 100 * point->allocated));
    }
    g_string_append(text, "\"/>\n");
}

/* What could be had at most: everything that was asked for. */
static void write_diagonal(const struct span *span, GString *text)
{
    const double from = MAX(span->x_min, span->y_min), to = MIN(span->x_max, 100);

    if (from < to)
        g_string_append_printf(text,
                               "<polyline fill=\"none\" stroke=\"#888888\" stroke-dasharray=\"4 4\" "
                               "points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
                               x_of(span, from), y_of(span, from), x_of(span, to), y_of(span, to),
                               x_of(span, span->x_max), y_of(span, to));
}

static void write_bar(GString *text, double x, double y, double width, double height,
                      const char *colour, double opacity)
{
    g_string_append_printf(text,
                           "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
                           "fill-opacity=\"%.2f\"/>\n",
                           x, y, width, height, colour, opacity);
}

static void write_bars(const struct chart *chart, GString *text)
{
    const double row = (double)(BOTTOM - TOP) / (double)MAX(chart->n_policies, 1);
    double most = 0.01;

    for (size_t i = 0; i < chart->n_policies; i++)
        most = MAX(most, chart->policies[i].end.part_used + chart->policies[i].end.untouched);
    write_label(text, BARS_LEFT - 90, TOP - 14, "start", "#444444",
                chart->lifetimes ? "Free GPU, mean, %%: on cards in use, on others"
                                 : "Free GPU at the end, %%: on cards in use, on others");
    for (size_t i = 0; i < chart->n_policies; i++) {
        const struct chart_policy *policy = &chart->policies[i];
        const double scale = (BARS_RIGHT - BARS_LEFT) / most;
        const double height = MIN(row * 0.45, BAR_MAX), y = TOP + row * (double)i + row * 0.25;
        const double used = policy->end.part_used * scale, rest = policy->end.untouched * scale;
        write_label(text, BARS_LEFT - 8, y + height / 2 + 4, "end", colours[i], "%s", policy->name);
        write_bar(text, BARS_LEFT, y, used, height, colours[i], 1);
        write_bar(text, BARS_LEFT + used, y, rest, height, colours[i], 0.35);
        write_label(text, BARS_LEFT, y + height + 14, "start", "#444444", "%.2f + %.2f",
                    100 * policy->end.part_used, 100 * policy->end.untouched);
    }
}

void chart_write(const struct chart *chart, GString *text)
{
    const struct span span = find_span(chart);

    g_string_append_printf(text,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                           "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                           "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                           WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    write_label(text, WIDTH / 2.0, 20, "middle", "#000000", "%s", chart->title);
    write_axes(chart, &span, text);
    if (!chart->lifetimes)
        write_diagonal(&span, text);
    for (size_t i = 0; i < chart->n_policies; i++) {
        write_policy_line(&chart->policies[i], &span, colours[i], text);
        write_line(text, LINES_RIGHT - 120, BOTTOM - 14 - 16 * (double)i, LINES_RIGHT - 96,
                   BOTTOM - 14 - 16 * (double)i, colours[i]);
        write_label(text, LINES_RIGHT - 90, BOTTOM - 10 - 16 * (double)i, "start", "#000000", "%s",
                    chart->policies[i].name);
    }
    write_bars(chart, text);
    g_string_append(text, "</svg>\n");
}
